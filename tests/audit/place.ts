import { expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createFundedBuyer, list } from '../support/buyer.ts'
import { makeData } from '../support/data.ts'
import { openMarket } from '../support/market.ts'
import { startTestService } from '../support/service.ts'
import { type Copies, openCopies } from './copies.ts'

/** Signed checkpoints of two chains at one time. */
type Checkpoints = { readonly system: string; readonly app: string }

export type Place = Copies & {
  /** The checkpoints before and after the sale. */
  readonly checkpoints: readonly Checkpoints[]
  /** Replaces the names behind `#` in a text by the numbers that the service gave. */
  readonly inserted: (text: string) => string
}

export const logNothing = () => undefined

/** Opens the data of a stopped service: a seller with an index, views and a data set; and one sale. */
export async function openPlace(): Promise<Place> {
  const checkpoints: Checkpoints[] = []
  const numbers = new Map<string, string>()
  const service = await startTestService({ devnet: true })
  const market = await openMarket(service, { price: { per_row: '100' } })
  const app = makeData(service, market)
  const head = async (id: string) =>
    (await service.request('GET', `/api/apps/${id}/chain/checkpoint`)).body.checkpoint
  await app.create({ name: 'sales' })
  await app.store('sales', [
    { id: 's1', market: 'BTC', amount: 3 },
    { id: 's2', market: 'ETH', amount: 7 },
    { id: 's3', market: 'BTC', amount: 4 },
  ])
  await app.store('sales', [{ id: 's3', market: 'BTC', amount: 5 }])
  await app.call('POST', '/indexes', { collection: 'sales', field: 'market' })
  const aggregate = { total: { $sum: 'amount' }, most: { $max: 'amount' } }
  const query = { select: ['market'], group_by: ['market'], aggregate }
  for (const [name, refresh_mode] of [
    ['live', 'live'],
    ['lazy', 'lazy'],
  ]) {
    const view = { name, source_collections: ['sales'], query, refresh_mode }
    expect((await app.call('POST', '/views', view)).status).toBe(201)
  }
  const isFilled = async () => {
    expect((await app.call('GET', '/views/live')).body.status).toBe('live')
    expect((await app.list('lazy')).body.records).toHaveLength(2)
  }
  await vi.waitFor(isFilled, { timeout: 10_000 })
  await app.call('POST', '/datasets', { name: 'set', kind: 'values', entries: ['a', 7] })
  await service.running.service.tenants.announceHeads()
  checkpoints.push({ system: await head('system'), app: await head(market.appId) })
  const buyer = await createFundedBuyer(service)
  const sold = await buyer.buy(service, list({ root: market.root, limit: 3 }))
  expect(sold.status, sold.text).toBe(200)
  checkpoints.push({ system: await head('system'), app: await head(market.appId) })
  const { catalog } = (await service.running.service.tenants.load(market.appId)).data
  for (const { view } of catalog.views.values()) numbers.set(view.name, String(view.number))
  for (const { number } of catalog.indexes.values()) numbers.set('index', String(number))
  for (const { number } of catalog.dataSets.values()) numbers.set('set', String(number))
  const copies = await service.whileStopped(openCopies)
  return {
    harmed: copies.harmed,
    close: async () => {
      await copies.close()
      await service.close()
    },
    checkpoints,
    inserted: (text) => text.replace(/#([a-z]+)/g, (_, name: string) => numbers.get(name) ?? '?'),
  }
}

/** The SQL that does the damage, the difference that the audit must name, and whether a rebuild repairs it. */
export type Harm = {
  readonly what: string
  readonly harm: string | readonly string[]
  readonly named: object
  readonly mended?: boolean
}

export const nameTable = (name: string, more: object = {}) => ({ what: `table ${name}`, ...more })
export const namePart = (name: string, text: string, more: object = {}) =>
  nameTable(name, { part: expect.stringMatching(text), ...more })
/** The members with which the audit names the tables of the collection with an index. */
export const records = { collection: 'sales' }

/** Runs one test for each damage, on a copy of its own. */
export function testHarms(harms: readonly Harm[], place: () => Place): void {
  test.each(harms)('the audit names $what', async ({ harm, named, mended }) => {
    await place().harmed(async (database, config) => {
      for (const statement of [harm].flat())
        await database.execute(sql.compiled(place().inserted(statement), []))
      const { equal, difference } = await audit(config, logNothing)
      const whole = Object.entries(named).map(([name, value]) => [
        name,
        typeof value === 'string' ? place().inserted(value) : value,
      ])
      expect(difference).toMatchObject(Object.fromEntries(whole))
      expect(equal).toBe(false)
      if (mended !== true) return
      expect(await rebuild(config, logNothing)).toMatchObject({ equal: true })
      expect(await audit(config, logNothing)).toMatchObject({ equal: true })
    })
  })
}
