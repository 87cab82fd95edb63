import { expect, test } from 'vitest'
import { sql } from '../database/sql.ts'
import { createTestDatabase } from '../database/testing.ts'
import { Ledger } from './ledger.ts'
import { listMeasuredSales, type MeasuredSale } from './measured-sales.ts'

const KiB = 1024
const schema = 'system'
const period = { schema, app: 'shop', fromMs: 0, toMs: 1_000_000 }

test('sales come in pages of bounded size, each sale once and in order, however long their entries are', async () => {
  const { database, drop } = await createTestDatabase()
  try {
    await database.execute(sql`CREATE SCHEMA system`)
    for (const statement of new Ledger().tables(schema)) await database.execute(statement)
    // Each tenth has some 150 KiB, as one of a thousand parts has; one has more than a page.
    await database.execute(sql`
      INSERT INTO system.sale (payment_id, identity, leaf, height, sequence, body)
      SELECT n::text, n::text, n, n, 0, json_build_object('measured',
        json_build_array(repeat('x', CASE WHEN n = 55 THEN 3000000 WHEN n % 10 = 0 THEN 150000 ELSE 9 END)))::text
      FROM generate_series(1, 120) AS one (n)`)
    await database.execute(sql`
      INSERT INTO system.sold (leaf, line, app, time_ms, operation, item_kind, item, buyer, quantity, gross, fee, payment_id)
      SELECT n, line, 'shop', n, 'read', 'collection', 'c', 'me', 1, 2, 0, n::text
      FROM generate_series(1, 121) AS one (n), generate_series(0, 1) AS two (line)`)
    const all: MeasuredSale[] = []
    const page = { limit: 50, bytes: 512 * KiB }
    for (let isEnded = false; !isEnded; ) {
      const asked = { ...page, after: all.at(-1) }
      const { sales, isLast } = await listMeasuredSales(database, period, asked)
      const before = sales.slice(0, -1)
      const chars = before.reduce((sum, { measuredText }) => sum + (measuredText?.length ?? 0), 0)
      expect(chars).toBeLessThan(page.bytes)
      expect(sales.length).toBeLessThanOrEqual(50)
      all.push(...sales)
      isEnded = isLast
    }
    expect(all.map(({ leaf }) => Number(leaf))).toEqual(
      Array.from({ length: 121 }, (_, at) => at + 1),
    )
    expect(all[54]?.measuredText?.length).toBeGreaterThan(3_000_000)
    // One from before the use was noted.
    expect(all[120]).toMatchObject({ measuredText: undefined, gross: 4n, buyer: 'me' })
    const none = { ...page, after: all.at(-1) }
    expect(await listMeasuredSales(database, period, none)).toEqual({ sales: [], isLast: true })
  } finally {
    await drop()
  }
})
