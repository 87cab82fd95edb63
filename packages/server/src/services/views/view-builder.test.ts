import { giveParts } from '@tollbase/testing/give-parts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { noLog } from '../../base/log.ts'
import { realWorld } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import type { StoredView } from '../../model/definitions.ts'
import type { PlannedView } from '../../model/view-plan.ts'
import {
  buildViewStateTables,
  insertProgress,
  markAt,
  readProgress,
  requestProgress,
} from '../../projections/view-state.ts'
import type { Tenant } from '../applications/tenants.ts'
import { ViewBuilder } from './view-builder.ts'

const schema = 'app_1'
let store: TestDatabase

beforeAll(async () => {
  store = await createTestDatabase()
  await store.database.execute(sql`CREATE SCHEMA ${sql.id(schema)}`)
  await store.database.execute(buildViewStateTables(schema))
})

afterAll(() => store?.drop())

test('a caller who waits for a refresh is not told by a look that began before it', async () => {
  const { database } = store
  const view = giveParts<StoredView>({ id: 'v', number: 1, name: 'v', positions: {} })
  const at = { leaf: 1, height: 1, sequence: 0 }
  await insertProgress(database, schema, { view, wanted: at })
  await markAt(database, schema, { views: ['v'], at, status: 'lazy', now: 1 })
  // Without a plan it cannot be refreshed, so it is marked stale where it is worked on.
  const views = new Map([['v', { view } as PlannedView]])
  const tenant = giveParts<Tenant>({ schema, data: { catalog: { views } } })
  let waiting: Promise<unknown> | undefined
  const meanwhile: Database = {
    ...database,
    query: async (statement, options) => {
      const rows = await database.query(statement, options)
      if (waiting === undefined && statement.text.includes('wanted_leaf')) {
        const wanted = { leaf: 2, height: 2, sequence: 0, positions: {} }
        await requestProgress(database, schema, { view: 'v', wanted })
        const statusNow = async () => (await readProgress(database, schema)).get('v')?.status
        waiting = builder.whenDone('shop', 'v').then(statusNow)
      }
      return rows as never
    },
  }
  const builder: ViewBuilder = new ViewBuilder({
    database: meanwhile,
    world: realWorld,
    log: noLog as never,
    tenantOf: async () => tenant,
    tenants: () => [],
    viewBytesMax: () => null,
    onStale: () => undefined,
  })
  builder.notice('shop')
  while (waiting === undefined) await new Promise((resolve) => setImmediate(resolve))
  expect(await waiting).toBe('stale')
  await builder.close()
})
