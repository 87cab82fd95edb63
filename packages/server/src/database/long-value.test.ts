import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { requirePresent } from '../base/assert.ts'
import { type FirstPiece, printFirstPiece, readRest } from './long-value.ts'
import { sql } from './sql.ts'
import { createTestDatabase } from './testing.ts'

const KiB = 1024
const column = sql.id('value')
const rows = sql`FROM passing.value WHERE id = 1`

test('a value comes whole from its pieces, whatever its length, unless its row changes meanwhile', async () => {
  const { database, drop } = await createTestDatabase()
  try {
    await database.execute(sql`CREATE SCHEMA passing`)
    await database.execute(sql`CREATE TABLE passing.value (id int8 PRIMARY KEY, value bytea)`)
    const readFirst = async () => {
      const [row] = await database.query<FirstPiece>(sql`SELECT ${printFirstPiece(column)} ${rows}`)
      return requirePresent(row, 'the row')
    }
    for (const bytes of [0, 1, 256 * KiB - 1, 256 * KiB, 256 * KiB + 1, 512 * KiB, 700 * KiB]) {
      const value = randomBytes(bytes)
      await database.execute(sql`DELETE FROM passing.value`)
      await database.execute(sql`INSERT INTO passing.value VALUES (1, ${value})`)
      const first = await readFirst()
      expect(await readRest(database, { column, rows }, first)).toEqual(value)
      await database.execute(sql`UPDATE passing.value SET value = ${randomBytes(bytes)}`)
      const read = await readRest(database, { column, rows }, first)
      expect(read === undefined, `${bytes} bytes`).toBe(bytes > 256 * KiB)
    }
  } finally {
    await drop()
  }
})
