import { expect, test } from 'vitest'
import { createFundedBuyer, list } from '../support/buyer.ts'
import { openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'

withService(
  (service) => {
    test('each payment to an application is one transaction, listed page by page, newest first, and found by its id', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = await createFundedBuyer(service())
      const receipts: (string | null)[] = []
      for (const limit of [1, 2, 3]) {
        const reply = await buyer.buy(service(), list({ root: market.root, limit }))
        expect(reply.status, reply.text).toBe(200)
        receipts.unshift(reply.headers.get('x-receipt-id'))
      }
      const path = `/api/apps/${market.appId}/transactions`
      const all: Json[] = []
      for (let cursor = ''; ; ) {
        const options = { headers: market.headers }
        const page = await service().request('GET', `${path}?limit=2${cursor}`, options)
        expect(page.status, page.text).toBe(200)
        all.push(...page.body.transactions)
        if (page.body.next_cursor === null) break
        cursor = `&cursor=${page.body.next_cursor}`
      }
      expect(all.map(({ amount }) => amount)).toEqual(['3000', '2000', '1000'])
      for (const [at, one] of all.entries()) {
        expect(one).toMatchObject({
          kind: 'payment',
          status: 'confirmed',
          app_id: market.appId,
          operation: 'list',
          from: buyer.address,
          to: null,
          error: null,
        })
        expect(one.id.replace('pay_', 'rcpt_')).toBe(receipts[at])
        const found = await service().request('GET', `/api/transactions/${one.id}`)
        expect(found.body.transaction_hash).toBe(one.transaction_hash)
        const receipt = await service().request('GET', `/api/receipts/${receipts[at]}`)
        expect(receipt.body.transaction).toBe(one.transaction_hash)
      }
    })
  },
  { devnet: true },
)
