import { tollbase } from '@tollbase/contract/contract'
import { createPublicClient, type Hex, http, parseAbi } from 'viem'
import { expect } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { Api } from './buyer.ts'
import type { Json, TestApp, TestService } from './service.ts'

export type Market = TestApp & {
  readonly root: string
  readonly collection: string
}

/** Opens an application with a collection `cities` at a price, and some records in it. */
export async function openMarket(
  service: Pick<TestService, 'request' | 'createApp'>,
  options: { price?: object; records?: readonly object[]; policy?: object } = {},
): Promise<Market> {
  const app = await service.createApp()
  const collection = 'cities'
  const created = await service.request('POST', `/api/apps/${app.appId}/collections`, {
    headers: app.headers,
    body: {
      name: collection,
      access_policy: {
        read: 'public',
        ...(options.price && { price: options.price }),
        ...options.policy,
      },
    },
  })
  expect(created.status, created.text).toBe(201)
  const market = { ...app, collection, root: `${app.appId}::${collection}` }
  const records = options.records ?? cities
  if (records.length > 0) await store(service, market, records)
  return market
}

export const cities = ['Wien', 'Graz', 'Linz', 'Salzburg', 'Innsbruck'].map((name, at) => ({
  id: `c${at}`,
  name,
  population: 100_000 + at,
}))

export async function store(service: Api, market: Market, data: readonly object[]) {
  const reply = await service.request('POST', '/store?wait=true', {
    headers: market.headers,
    body: { root: market.root, data },
  })
  expect(reply.status, reply.text).toBe(200)
  return reply
}

export async function setPrices(service: Api, market: Market, rules: readonly object[]) {
  const reply = await service.request('PUT', `/api/apps/${market.appId}/pricing`, {
    headers: market.headers,
    body: {
      rules: rules.map((rule) => ({ target: { collection: market.collection }, ...rule })),
      confirm_free: [{ collection: market.collection }],
    },
  })
  expect(reply.status, reply.text).toBe(200)
}

/** Reads the balance of an account of the application, in atomic units. */
export async function readEarnings(service: Api, market: TestApp): Promise<bigint> {
  const { body } = await service.request('GET', `/api/apps/${market.appId}/wallet`, {
    headers: market.headers,
  })
  return BigInt(body.available)
}

/** Reads every account of the ledger, straight from its table. */
export async function readAccounts(service: TestService): Promise<Map<string, bigint>> {
  const { chain } = service.running.service.tenants.system
  await chain.whenApplied(chain.head().height)
  const rows = await service.database.query<{ account: string; balance: string }>(
    sql`SELECT account, balance FROM system.account`,
  )
  return new Map(rows.map(({ account, balance }) => [account, BigInt(balance)]))
}

/** Reads the balance of an address on the chain itself. */
export async function readChainBalance(service: TestService, address: string): Promise<bigint> {
  const { devnet } = service.running
  if (devnet === undefined) throw new Error('this needs the devnet')
  return readTokens(devnet, address)
}

export function readTokens(
  devnet: { readonly rpcUrl: string; readonly token: string },
  address: string,
): Promise<bigint> {
  const client = createPublicClient({ transport: http(devnet.rpcUrl) })
  return client.readContract({
    address: devnet.token as Hex,
    abi: parseAbi(['function balanceOf(address) view returns (uint256)']),
    functionName: 'balanceOf',
    args: [address as Hex],
  })
}

/** Checks that no money was lost or made: all accounts sum to zero, and no payer is in debt. */
export async function expectBalanced(service: TestService): Promise<void> {
  const all = await readAccounts(service)
  expect([...all.values()].reduce((sum, one) => sum + one, 0n)).toBe(0n)
  const debtors = [...all].filter(
    ([name, one]) => !/^(outside|channel|escrow):|^losses$/.test(name) && one < 0n,
  )
  expect(debtors).toEqual([])
}

/** Reads the receipt of a sale; no member of it is untold in the contract. */
export async function readReceipt(service: Api, reply: { headers: Headers }): Promise<Json> {
  const id = reply.headers.get('x-receipt-id')
  const { status, body } = await service.request('GET', `/api/receipts/${id}`)
  expect(status).toBe(200)
  const told = new Set(Object.keys(tollbase.getReceipt.reply.properties))
  expect(Object.keys(body).filter((name) => !told.has(name))).toEqual([])
  return body
}
