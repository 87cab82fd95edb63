import { generateKeyPairSync } from 'node:crypto'
import pino from 'pino'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { realWorld } from '../../base/world.ts'
import { makeSigner } from '../../chain/signing.ts'
import type { Database } from '../../database/database.ts'
import { runMigrations } from '../../database/run-migrations.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { migrations } from '../../operator/migrations.ts'
import { DataKeys } from '../encryption/data-keys.ts'
import { openTenants, type TenantsOptions } from './tenants.ts'

const { privateKey } = generateKeyPairSync('ed25519')
let store: TestDatabase

beforeAll(async () => {
  store = await createTestDatabase()
  await runMigrations(store.database, migrations, { now: Date.now() })
})

afterAll(() => store?.drop())

test('a schema that another process makes at the same moment is taken as it is', async () => {
  const options = makeOptions()
  let isFirst = true
  const meanwhile: Database = {
    ...store.database,
    query: async (statement, given) => {
      const rows = await store.database.query(statement, given)
      if (isFirst) {
        isFirst = false
        expect(rows).toEqual([])
        const other = await openTenants({ ...options, holder: 'other' })
        await other.close()
      }
      return rows as never
    },
  }
  const tenants = await openTenants({ ...options, database: meanwhile })
  expect(tenants.system.chain.failure).toBeUndefined()
  await tenants.close()
})

test('a process knows what an earlier one, which stood still, has applied while it took over', async () => {
  const options = makeOptions()
  let isHeldBack = false
  let goOn: () => void = () => undefined
  const pause = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const standsStill: Database = {
    ...store.database,
    transaction: async (work, given) => {
      if (isHeldBack) await pause
      return store.database.transaction(work, given)
    },
  }
  const earlier = await openTenants({ ...options, holder: 'earlier', database: standsStill })
  isHeldBack = true
  const key = { key_hash: 'hash', app_id: 'shop', revoked_at: null, expires_at: null }
  const entry = { header: { type: 'key' }, body: JSON.stringify(key) }
  const { height } = await earlier.system.chain.append([entry])
  await store.database.execute(sql`UPDATE operations.chain_lease SET expires_at_ms = 0`)
  let isOpening = true
  const meanwhile: Database = {
    ...store.database,
    transaction: async (work, given) => {
      const result = await store.database.transaction(work, given)
      if (isOpening) {
        // The tables were read; only now the earlier one wakes and applies its block.
        isOpening = false
        goOn()
        await earlier.system.chain.whenApplied(height)
      }
      return result
    },
  }
  const tenants = await openTenants({ ...options, holder: 'later', database: meanwhile })
  expect(tenants.system.chain.failure).toBeUndefined()
  expect(tenants.system.keys.find('hash', Date.now())).toMatchObject({ app_id: 'shop' })
  await Promise.all([earlier.close(), tenants.close()])
})

function makeOptions(): TenantsOptions {
  return {
    database: store.database,
    world: realWorld,
    log: pino({ level: 'silent' }),
    serviceName: 'test',
    holder: 'one',
    loadSigner: async (origin) => makeSigner(privateKey, origin),
    dataKeys: new DataKeys({
      database: store.database,
      world: realWorld,
      keyFile: '/nowhere/master-keys',
      masterKeys: undefined,
    }),
  }
}
