import { generateKeyPairSync } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noLog } from '../../base/log.ts'
import { realWorld } from '../../base/world.ts'
import { makeSigner } from '../../chain/signing.ts'
import type { Database } from '../../database/database.ts'
import { runMigrations } from '../../database/run-migrations.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { migrations } from '../../operator/migrations.ts'
import { DataKeys } from '../encryption/data-keys.ts'
import { openTenants, type TenantsOptions } from './tenants.ts'

let store: TestDatabase

beforeAll(async () => {
  store = await createTestDatabase()
  await runMigrations(store.database, migrations, { now: Date.now() })
})

afterAll(() => store?.drop())

test('a schema that another process makes at the same moment is taken as it is', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  const options: TenantsOptions = {
    database: store.database,
    world: realWorld,
    log: noLog as unknown as TenantsOptions['log'],
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
