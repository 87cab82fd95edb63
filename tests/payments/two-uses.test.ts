import { setTimeout } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { chooseUse } from '../../packages/server/src/services/payments/facilitating/two-uses.ts'
import {
  ask,
  type Buyer,
  createFundedBuyer,
  list,
  makeBuyer,
  type PaymentHeader,
  parseEntry,
  quote,
} from '../support/buyer.ts'
import { expectBalanced, type Market, openMarket, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestApp, TestService } from '../support/service.ts'
import { expectAuditEqual } from './reorganize.ts'

vi.setConfig({ testTimeout: 120_000 })

const facilitator = {
  ...({ access: 'key', networks: undefined, minimumPayment: 500n } as const),
  ...{ settlementsPerDay: 10, allSettlementsPerDay: 100 },
} as const
const elsewhere = `0x${'9'.repeat(64)}`
const asked = ({ root }: Market) => list({ root, limit: 2 })

type Bring = () => Promise<boolean>
type Scene = {
  readonly market: Market
  readonly buyer: Buyer
  readonly buyHere: Bring
  readonly settleThere: Bring
}

/** A payment to the wallet of a seller who sells here, and by another server of its that lets this service settle. */
async function openScene(service: TestService): Promise<Scene> {
  const market = await openMarket(service)
  await setPrices(service, market, [{ operation: 'read', model: 'per_access', amount: '1000' }])
  const { headers } = market
  const owner = { owner_address: makeBuyer().address }
  await service.request('PATCH', `/api/apps/${market.appId}`, {
    ...{ headers: service.operator, body: owner },
  })
  const settings = { headers, body: { direct_settlement: true } }
  await service.request('POST', `/api/apps/${market.appId}/payout/settings`, settings)
  const giver = await createFundedBuyer(service, 1_000n)
  const path = `/api/apps/${market.appId}/wallet/deposit`
  await giver.buy(service, { method: 'POST', path, headers, raw: '{"amount":"1000"}' })
  const buyer = await createFundedBuyer(service, 5_000n)
  const required = await quote(service, asked(market))
  expect(parseEntry(required).payTo).toBe(owner.owner_address)
  const header = await buyer.payV2(required)
  const app = await service.createApp()
  return {
    ...{ market, buyer },
    buyHere: async () => {
      const reply = await ask(service, asked(market), { ...header, 'x-balance': 'off' })
      return reply.status === 200
    },
    settleThere: () => settle(service, app, header),
  }
}

async function settle(service: TestService, app: TestApp, header: PaymentHeader): Promise<boolean> {
  const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
  const { accepted, payload } = JSON.parse(text)
  const { quoteId, ...extra } = accepted.extra
  const paymentRequirements = { ...accepted, extra }
  const paymentPayload = { x402Version: 2, accepted: paymentRequirements, payload }
  const body = { x402Version: 2, paymentPayload, paymentRequirements }
  const reply = await service.request('POST', '/api/payments/settle', {
    ...{ headers: app.headers, body },
  })
  return reply.body.success
}

/** Begins one after the other, each with time to find that nobody has made the payment yet; then both are sent. */
async function bringBoth(
  { database }: TestService,
  [first, second]: readonly [Bring, Bring],
): Promise<readonly boolean[]> {
  const begun = await database.transaction(async (tx) => {
    await tx.execute(sql`LOCK TABLE operations.transaction_journal IN EXCLUSIVE MODE`)
    const one = first()
    await setTimeout(1_000)
    const other = second()
    await setTimeout(1_000)
    return [one, other]
  })
  return Promise.all(begun)
}

withService(
  (service) => {
    test.each(['purchase', 'settlement'] as const)(
      'P1: what is brought at once for a purchase and by another server of its seller is sold for once: the %s that was first',
      async (winner) => {
        const { buyer, buyHere, settleThere } = await openScene(service())
        const ways = [buyHere, settleThere] as const
        const told = await bringBoth(service(), winner === 'purchase' ? ways : [ways[1], ways[0]])
        expect(told).toEqual([true, false])
        const { database } = service()
        const [row] = await database.query<{ identity: string }>(sql`
          SELECT identity FROM operations.claim WHERE split_part(identity, '/', 3) = ${buyer.address}`)
        // Where somebody else had made it, the first one would have it, too.
        expect(await chooseUse(database, row?.identity ?? '', elsewhere)).toBe(winner)
        await expectBalanced(service())
        await expectAuditEqual(service())
      },
    )
  },
  { devnet: true, config: { facilitator } },
)
