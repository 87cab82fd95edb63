import type { Place } from '../faults/place.ts'
import { type Buyer, makeBuyer } from '../support/buyer.ts'
import { type Market, openMarket, setPrices } from '../support/market.ts'
import { recordPrice, rowPrice } from './worker.ts'

/** The money with which every buyer starts, in atomic units: the most that the faucet gives. */
export const funds = 1_000_000_000n

/** An application that gives away `open`, sells rows of `cities`, and takes money for writes to `orders`. */
export async function openSoakMarket({ service }: Place, id: string): Promise<Market> {
  const createApp = () => service.createApp(id)
  const market = await openMarket({ ...service, createApp }, { price: { per_row: `${rowPrice}` } })
  for (const name of ['open', 'orders']) {
    await service.request('POST', `/api/apps/${id}/collections`, {
      headers: market.headers,
      body: { name, access_policy: 'public' },
    })
  }
  await setPrices(service, market, [
    { operation: 'read', model: 'per_row', amount: `${rowPrice}` },
    {
      target: { collection: 'orders' },
      operation: 'write',
      model: 'per_record',
      amount: `${recordPrice}`,
    },
  ])
  return market
}

export async function createWorkerBuyer({ service }: Place): Promise<Buyer> {
  const buyer = makeBuyer()
  const body = { address: buyer.address, amount: String(funds) }
  const { status, text } = await service.request('POST', '/devnet/faucet', { body })
  if (status !== 200) throw new Error(`the faucet gave nothing: ${text}`)
  return buyer
}
