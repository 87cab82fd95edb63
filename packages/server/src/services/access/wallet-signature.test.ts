import { limits } from '@tollbase/contract/limits'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import {
  buildSignaturePaymentColumn,
  buildUsedSignatureTables,
  useSignature,
} from './wallet-signature.ts'

let store: TestDatabase
beforeAll(async () => {
  store = await createTestDatabase()
  const tables = [...buildUsedSignatureTables(), ...buildSignaturePaymentColumn()]
  for (const statement of [sql`CREATE SCHEMA operations`, ...tables])
    await store.database.execute(statement)
})
afterAll(() => store?.drop())

const startMs = Date.UTC(2026, 0, 2)
const spanMs = 2 * limits.signedRequestWindowSeconds * 1000

test('a signature counts once while it is good, and only now and then are all looked at for those to forget', async () => {
  const { database } = store
  await database.execute(sql`
    INSERT INTO operations.used_signature (id, used_at_ms)
    SELECT 'old ' || n, ${startMs - spanMs - 1}::int8 FROM generate_series(1, 1000) AS n`)
  let looks = 0
  const stop = database.observe((text) => {
    if (text.startsWith('DELETE')) looks += 1
  })
  const use = (n: number, nowMs: number) =>
    useSignature(database, { signer: '0xa', digest: Buffer.from([n]), nowMs })
  for (let n = 0; n < 100; n++) {
    expect(await use(n, startMs + n)).toBe(true)
    expect(await use(n, startMs + n)).toBe(false)
  }
  stop()
  expect(looks).toBe(1)
  expect(await count()).toBe(100)
  // Those that are good for nothing any more are gone before long, whatever the clock did meanwhile.
  await use(200, startMs - spanMs)
  expect(await use(201, startMs + 2 * spanMs)).toBe(true)
  expect(await count()).toBe(1)
})

async function count(): Promise<number> {
  const [row] = await store.database.query<{ count: number }>(
    sql`SELECT count(*)::int4 AS count FROM operations.used_signature`,
  )
  return row?.count ?? 0
}
