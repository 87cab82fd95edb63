import { expect } from 'vitest'
import { createData, type Data } from './data.ts'
import type { Json, TestReply, TestService } from './service.ts'

/** Sales of two markets, as most tests of views begin. */
export const sales = [
  { id: 's1', market: 'BTC', price: 10, amount: 2 },
  { id: 's2', market: 'BTC', price: 12.5, amount: 1 },
  { id: 's3', market: 'ETH', price: 3, amount: 7 },
]

export const perMarket = {
  select: ['market'],
  group_by: ['market'],
  aggregate: { total: { $sum: 'amount' }, trades: { $count: '*' } },
}

/** Creates an application with sales. */
export async function createSeller(service: TestService): Promise<Data> {
  const app = await createData(service)
  await app.create({ name: 'sales', access_policy: 'public' })
  const stored = await app.store('sales', sales)
  expect(stored.status, stored.text).toBe(200)
  return app
}

export async function createView(app: Data, body: object): Promise<Json> {
  const reply = await app.call('POST', '/views', { source_collections: ['sales'], ...body })
  expect(reply.status, reply.text).toBe(201)
  return reply.body
}

export async function createFromSql(app: Data, sql: string, more: object = {}): Promise<Json> {
  const reply = await app.call('POST', '/views/sql', { sql, ...more })
  expect(reply.status, reply.text).toBe(201)
  return reply.body
}

/** Lists the rows of a view, in the order of one of their fields. */
export function listRows(reply: TestReply, by = 'market'): Json[] {
  expect(reply.status, reply.text).toBe(200)
  const rows: Json[] = reply.body.records ?? reply.body.data
  return [...rows].sort((a, b) => (String(a[by]) < String(b[by]) ? -1 : 1))
}

export const grouped = [
  { market: 'BTC', total: 3, trades: 2 },
  { market: 'ETH', total: 7, trades: 1 },
]
