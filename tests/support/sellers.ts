import { createFundedBuyer, list } from './buyer.ts'
import { type Market, openMarket } from './market.ts'
import type { TestService } from './service.ts'

/** An application with an owner that has sold five rows for 5,000, of which 4,000 are its own. */
export async function openSeller(service: TestService, owner: string): Promise<Market> {
  const market = await openMarket(service, { price: { per_row: '1000' } })
  const buyer = await createFundedBuyer(service)
  await buyer.buy(service, list({ root: market.root, limit: 5 }))
  const body = { owner_address: owner }
  await service.request('PATCH', `/api/apps/${market.appId}`, { body, headers: service.operator })
  return market
}
