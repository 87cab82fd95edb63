import { expect, test } from 'vitest'
import {
  type Buyer,
  createFundedBuyer,
  list,
  makeBuyer,
  parseEntry,
  quote,
} from '../support/buyer.ts'
import { expectBalanced, openMarket, readChainBalance } from '../support/market.ts'
import { connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'

withService(
  (service) => {
    const path = '/api/platform/wallet'
    const asOperator = (method: string, where: string, body?: object) =>
      service().request(method, where, { headers: service().operator, ...(body && { body }) })
    const sell = async (buyer: Buyer) => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const reply = await buyer.buy(service(), list({ root: market.root, limit: 5 }))
      expect(reply.status, reply.text).toBe(200)
      return market
    }

    test('the operator sees its share of the sales, and has it sent out once; nobody else sees or takes it', async () => {
      const market = await sell(await createFundedBuyer(service()))
      const before = await asOperator('GET', path)
      expect(before.body).toMatchObject({
        ...{ available: '1000', pending: '0', decimals: 6 },
        usd: { available: '0.001', pending: '0.00' },
      })
      const entries = await asOperator('GET', `${path}/entries`)
      expect(entries.body.entries[0]).toMatchObject({ kind: 'sale', amount: '1000' })
      const destination = makeBuyer().address
      const body = { amount: '600', destination, idempotency_key: 'november' }
      for (let n = 0; n < 2; n++) {
        const sent = await asOperator('POST', `${path}/withdraw`, body)
        expect(sent.status, sent.text).toBe(202)
        expect(sent.body).toMatchObject({ amount: '600', destination })
      }
      await expect
        .poll(() => readChainBalance(service(), destination), { timeout: 30_000 })
        .toBe(600n)
      expect((await asOperator('GET', path)).body.available).toBe('400')
      const much = await asOperator('POST', `${path}/withdraw`, { amount: '401', destination })
      expect(much.body.code, much.text).toBe('BALANCE_TOO_LOW')
      for (const headers of [{}, market.headers]) {
        const read = await service().request('GET', path, { headers })
        expect([401, 403]).toContain(read.status)
        const where = `${path}/withdraw`
        const taken = await service().request('POST', where, { headers, body })
        expect([401, 403]).toContain(taken.status)
      }
      await expectBalanced(service())
    })

    test('a devnet says in each 402 that its money is play money, and its faucet gives coins for gas, too', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const required = await quote(service(), list({ root: market.root, limit: 1 }))
      expect(parseEntry(required).extra.playMoney).toContain('play money')
      expect(required.body.accepts[0].extra.playMoney).toContain('play money')
      const { address } = (await createFundedBuyer(service())).account
      expect(await connectDevnet(service()).getBalance({ address })).toBe(10n ** 18n)
    })
  },
  { devnet: true },
)
