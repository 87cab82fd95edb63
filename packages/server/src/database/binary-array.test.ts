import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { encodeBytesArray, encodeTextArray } from './binary-array.ts'
import { sql } from './sql.ts'
import { createTestDatabase } from './testing.ts'

test('arrays in binary form are read as they were written, empty ones and empty elements too', async () => {
  const { database, drop } = await createTestDatabase('embedded')
  try {
    const bytes = [randomBytes(70_000), Buffer.alloc(0), Buffer.from([0, 255, 92, 34])]
    const texts = ['', '{"a":"\\"b\\" {,}"}', 'NULL', 'grün ☃ 🂡', 'x'.repeat(70_000)]
    const [row] = await database.query(
      sql`SELECT ${encodeBytesArray(bytes)}::bytea[] AS bytes, ${encodeTextArray(texts)}::text[] AS texts,
        cardinality(${encodeBytesArray([])}::bytea[]) AS none, cardinality(${encodeTextArray([])}::text[]) AS nothing`,
    )
    expect(row).toEqual({ bytes, texts, none: 0, nothing: 0 })
  } finally {
    await drop()
  }
})
