import { expect, test } from 'vitest'
import { buildCatalog, type Catalog, emptyCatalog } from '../../model/catalog.ts'
import type { CollectionDefinition } from '../../model/definitions.ts'
import type { StoredQuery } from '../../model/stored-query.ts'
import type { Tenant, Tenants } from '../applications/tenants.ts'
import { QueryPlans } from './query-plans.ts'

const made = '2026-01-01T00:00:00.000Z'

const onRead = () => undefined

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

function makeTenant(app: string, number: number): Tenant {
  const data = { catalog: makeCatalog('number', 1) }
  return { application: { app_id: app, number }, data } as unknown as Tenant
}

function makeTenants(...all: readonly Tenant[]): Tenants {
  const load = async (app: string) => all.find(({ application }) => application.app_id === app)
  return { load } as unknown as Tenants
}

function makeQuery(app: string, name: string): StoredQuery {
  const sql = `SELECT a FROM ${app}::c`
  return { name, version: 1, sql, parameters: [], sources: ['c'], created_at: made }
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
  const stored = makeQuery('shop', 'q')
  const plans = new QueryPlans()
  const before = await plans.load(tenants, tenant, { stored, onRead })
  const after = await plans.load(tenants, tenant, { stored, onRead })
  expect(after.number).not.toBe(before.number)
  expect((await plans.load(tenants, tenant, { stored, onRead })).number).toBe(after.number)
})

test('the statements of a plan are bounded by their number, and by the bytes of every text in their values', async () => {
  const [tenant, stored] = [makeTenant('shop', 1), makeQuery('shop', 'q')]
  const plans = new QueryPlans()
  const plan = await plans.load(makeTenants(tenant), tenant, { stored, onRead })
  const countKept = (values: readonly unknown[]) => {
    const keys = Array.from({ length: 100 }, (_, at) => `${values.length} ${at}`)
    for (const key of keys)
      plan.statements.set(key, { key, statement: { text: 'SELECT 1', values }, isTimed: false })
    return keys.filter((key) => plan.statements.get(key) !== undefined).length
  }
  const list = Array.from({ length: 10_000 }, (_, at) => `"v${at}"`)
  expect(countKept([list, list])).toBe(9)
  expect(countKept(['x'])).toBe(64)
})

test('what is kept counts with its statements, and goes with them where it is read anew or driven out', async () => {
  const [tenant, stored] = [makeTenant('shop', 1), makeQuery('shop', 'q')]
  const tenants = makeTenants(tenant)
  const plans = new QueryPlans({ bytesMax: 100_000, shareBytesMax: 50_000 })
  const plan = await plans.load(tenants, tenant, { stored, onRead })
  const { bytes } = plans
  const statement = { text: 'x'.repeat(10_000), values: [] }
  plan.statements.set('k', { key: 'k', statement, isTimed: false })
  expect(plans.bytes).toBeGreaterThan(bytes + 10_000)
  Object.assign(tenant.data, { catalog: makeCatalog('number', 2) })
  await plans.load(tenants, tenant, { stored, onRead })
  expect(plans.bytes).toBe(bytes)
  plan.statements.set('l', { key: 'l', statement, isTimed: false })
  expect(plans.bytes).toBe(bytes)
})

test('descriptions of all queries of an application drive out no plan of another, and read each query once', async () => {
  const [shop, flood] = [makeTenant('shop', 1), makeTenant('flood', 2)]
  const tenants = makeTenants(shop, flood)
  const plans = new QueryPlans({ bytesMax: 200_000, shareBytesMax: 100_000 })
  const stored = makeQuery('shop', 'q')
  const { number } = await plans.load(tenants, shop, { stored, onRead })
  const queries = Array.from({ length: 40 }, (_, at) => makeQuery('flood', `q${at}`))
  let reads = 0
  const countRead = () => {
    reads += 1
  }
  const describeAll = async () => {
    for (const one of queries)
      await plans.loadFacts(tenants, flood, { stored: one, onRead: countRead })
  }
  await Promise.all([describeAll(), describeAll()])
  await describeAll()
  expect(reads).toBe(40)
  for (const one of queries) await plans.load(tenants, flood, { stored: one, onRead })
  expect(plans.bytes).toBeLessThan(110_000)
  expect((await plans.load(tenants, shop, { stored, onRead })).number).toBe(number)
})

test('a plan serves descriptions too, and a description of it drives out no plan', async () => {
  const [tenant, stored] = [makeTenant('shop', 1), makeQuery('shop', 'q')]
  const tenants = makeTenants(tenant)
  const plans = new QueryPlans()
  const [facts, { number }] = await Promise.all([
    plans.loadFacts(tenants, tenant, { stored, onRead }),
    plans.load(tenants, tenant, { stored, onRead }),
  ])
  expect(facts.columns).toEqual(['a'])
  expect(await plans.loadFacts(tenants, tenant, { stored, onRead })).toEqual(facts)
  expect((await plans.load(tenants, tenant, { stored, onRead })).number).toBe(number)
})

test('those who shared a reading of definitions that are older by now share the next one', async () => {
  const data = { catalog: makeCatalog('number', 1) }
  const tenant = { application: { app_id: 'shop', number: 1 }, data } as unknown as Tenant
  let loads = 0
  const load = async () => {
    loads += 1
    if (loads === 2) setImmediate(() => Object.assign(data, { catalog: makeCatalog('string', 2) }))
    return tenant
  }
  const tenants = { load } as unknown as Tenants
  const stored = makeQuery('shop', 'q')
  const plans = new QueryPlans()
  let reads = 0
  const countRead = () => {
    reads += 1
  }
  const asked = { stored, onRead: countRead }
  const all = await Promise.all(
    Array.from({ length: 10 }, () => plans.load(tenants, tenant, asked)),
  )
  expect(reads).toBe(2)
  expect(new Set(all.map(({ number }) => number)).size).toBe(2)
})
