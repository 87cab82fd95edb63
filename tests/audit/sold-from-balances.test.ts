import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Config } from '../../packages/server/src/config/config.ts'
import type { Database } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import {
  createScratch,
  listChainPlaces,
  markReplayed,
  replay,
} from '../../packages/server/src/operator/maintenance.ts'
import { ask, type Buyer, createFundedBuyer, depositing, list, quote } from '../support/buyer.ts'
import { openMarket } from '../support/market.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { type Copies, openCopies } from './copies.ts'
import { nameTable } from './place.ts'

let service: TestService
let copies: Copies
let buyer: Buyer

/** A service whose last sale, of 300, is from a balance, and was one commit. */
beforeAll(async () => {
  service = await startTestService({ devnet: true })
  const market = await openMarket(service, { price: { per_row: '100' } })
  buyer = await createFundedBuyer(service)
  expect((await buyer.buy(service, depositing(buyer.address, '5000'))).status).toBe(200)
  const asked = list({ root: market.root, limit: 3 })
  // The first sale of an account is held by itself.
  for (const _ of [1, 2])
    expect((await ask(service, asked, await buyer.payV2(await quote(service, asked)))).status).toBe(
      200,
    )
  copies = await service.whileStopped(openCopies)
})
afterAll(async () => {
  await copies?.close()
  await service?.close()
})

/** Takes the last sale's block out of the service's own tables, as a crash leaves them before they get it. */
async function fallBehind(database: Database, config: Config): Promise<number> {
  const [system] = await listChainPlaces(config, database)
  if (system === undefined) throw new Error('there is no log')
  const [{ last } = { last: 0 }] = await database.query<{ last: number }>(
    sql`SELECT max(posting.height)::int4 AS last FROM system.posting AS posting JOIN system.sale USING (leaf)`,
  )
  const projections = system.projections()
  await database.transaction((tx) => createScratch(tx, 'behind', projections))
  const to = { schema: 'behind', projections, height: last - 1, progress: () => undefined }
  await replay(database, system, to)
  const tables = await database.query<{ name: string }>(
    sql`SELECT tablename::text AS name FROM pg_tables WHERE schemaname = 'behind' AND tablename NOT IN ('block', 'tile', 'watermark')`,
  )
  for (const { name } of tables) {
    await database.execute(sql`DELETE FROM ${sql.id('system', name)}`)
    await database.execute(
      sql`INSERT INTO ${sql.id('system', name)} SELECT * FROM ${sql.id('behind', name)}`,
    )
  }
  await database.transaction((tx) => markReplayed(tx, 'system', last - 1))
  await database.execute(sql`DROP SCHEMA behind CASCADE`)
  return last
}

test('the audit names a sale from a balance whose claim is gone', async () => {
  await copies.harmed(async (database, config) => {
    expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
    const gone = await database.query<{ id: string }>(
      sql`DELETE FROM operations.claim WHERE state IN ('sold', 'delivered') AND settled_by IS NULL RETURNING id`,
    )
    await database.execute(sql`DELETE FROM operations.kept_reply`)
    const row = gone.map(({ id }) => id).toSorted()[0]
    expect((await audit(config, () => undefined)).difference).toMatchObject(
      nameTable('operations.claim', { row, field: 'id', expected: row, found: 'none' }),
    )
  })
})

test('the audit names a block above the tables that holds less than it charged, or nothing', async () => {
  await copies.harmed(async (database, config) => {
    const height = await fallBehind(database, config)
    const account = `wallet:${buyer.address}`
    for (const [held, found] of [
      ['300', undefined],
      ['299', '299'],
      ['301', '301'],
      [undefined, '0'],
    ]) {
      await database.execute(sql`DELETE FROM operations.account_hold`)
      if (held !== undefined)
        await database.execute(
          sql`INSERT INTO operations.account_hold (id, account, amount, height) VALUES (${`block_${height}_1`}, ${account}, ${held}::numeric, ${height}::int8)`,
        )
      const { difference } = await audit(config, () => undefined)
      if (found === undefined) expect(difference).toBeUndefined()
      else
        expect(difference).toMatchObject(
          nameTable('operations.account_hold', { field: 'amount', found }),
        )
    }
  })
})
