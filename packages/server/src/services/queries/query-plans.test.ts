import { expect, test } from 'vitest'
import { buildCatalog, type Catalog, emptyCatalog } from '../../model/catalog.ts'
import type { CollectionDefinition } from '../../model/definitions.ts'
import type { StoredQuery } from '../../model/stored-query.ts'
import type { Tenant, Tenants } from '../applications/tenants.ts'
import { QueryPlans } from './query-plans.ts'

const made = '2026-01-01T00:00:00.000Z'

function makeCatalog(type: string, version: number): Catalog {
  const collection = {
    id: 'col_1',
    number: 1,
    name: 'c',
    schema_definition: { properties: { a: { type } } },
    access_policy: 'public',
  } as unknown as CollectionDefinition
  return buildCatalog({ ...emptyCatalog, version, collections: new Map([['col_1', collection]]) })
}

test('a plan that was made while its sources changed is made anew for the next run', async () => {
  const data = { catalog: makeCatalog('number', 1) }
  const tenant = { application: { app_id: 'shop', number: 1 }, data } as unknown as Tenant
  let loads = 0
  const load = async () => {
    loads += 1
    // By the second one its types are asked for, and its text is read next, in which others have turns.
    if (loads === 2) setImmediate(() => Object.assign(data, { catalog: makeCatalog('string', 2) }))
    return tenant
  }
  const tenants = { load } as unknown as Tenants
  const stored: StoredQuery = {
    name: 'q',
    version: 1,
    sql: 'SELECT a FROM shop::c',
    parameters: [],
    sources: ['c'],
    created_at: made,
  }
  const plans = new QueryPlans()
  const before = await plans.load(tenants, tenant, stored)
  const after = await plans.load(tenants, tenant, stored)
  expect(after.number).not.toBe(before.number)
  expect((await plans.load(tenants, tenant, stored)).number).toBe(after.number)
})
