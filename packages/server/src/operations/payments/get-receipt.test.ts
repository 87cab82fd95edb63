import { ask, createFundedBuyer, depositing, list } from '@tollbase/testing/buyer'
import { openMarket, readReceipt, setPrices } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import { perRow } from '@tollbase/testing/price-rules'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'

describe('getReceipt', () =>
  withService(
    (service) => {
      test('a receipt that was never given is not found, and neither is the id of a payment', async () => {
        for (const id of [`rcpt_${'0'.repeat(32)}`, `pay_${'0'.repeat(32)}`, 'x'])
          expect((await service().request('GET', `/api/receipts/${id}`)).body.code, id).toBe(
            'RECEIPT_NOT_FOUND',
          )
      })

      test('the receipt of a sale names request, payer, charge and who shares in it, and stays the same', async () => {
        const market = await openMarket(service(), { price: { per_row: '1000' } })
        const buyer = await createFundedBuyer(service())
        const bought = await buyer.buy(service(), list({ root: market.root, limit: 2 }))
        const { ledger, signature: _, ...receipt } = await readReceipt(service(), bought)
        expect(receipt).toMatchObject({
          payer: buyer.address,
          amount: '2000',
          app: market.appId,
        })
        // Its proof is of the moment at which it is asked for.
        const again = await readReceipt(service(), bought)
        expect(again).toMatchObject(receipt)
        expect(again.ledger.entry).toBe(ledger.entry)
      })

      test('the details of a sale tell who earned it, what was used, on which budget and quota it counts, and which pass it is', async () => {
        const market = await openMarket(service())
        const item = { kind: 'collection', name: market.collection, account: `app:${market.appId}` }
        const rule = { target: { collection: market.collection }, operation: 'read' }
        await setPrices(service(), market, [
          perRow('1000', rule.target),
          { ...rule, model: 'free_quota', unit: 'row', quantity: 2 },
          { ...rule, model: 'time_pass', hours: 24, amount: '500' },
        ])
        const buyer = await createFundedBuyer(service())
        await buyer.buy(service(), depositing(buyer.address, '9000'))
        const granted = await askSigned(service(), makeTestWallet(buyer.account), {
          ...{ method: 'POST', path: `/api/apps/${market.appId}/authorizations` },
          body: { grantee: 'an agent', spend_limit: '9000' },
        })
        const agent = { 'x-user-key': granted.body.user_key }

        const read = await ask(service(), list({ root: market.root, limit: 3 }), agent)
        const now = new Date().toISOString()
        const receipt = await readReceipt(service(), read)
        expect(receipt).toMatchObject({
          amount: '3000',
          sold: [{ ...item, gross: '3000', fee: '600' }],
          measured: [{ ...item, by: 'rows', rows: 3, charged: '3000' }],
          budget: granted.body.id,
          budget_day: now.slice(0, 10),
          uses: [{ ...item, period: now.slice(0, 7), request: '1', row: '3', free_row: '0' }],
        })

        const path = `/api/apps/${market.appId}/passes`
        const raw = JSON.stringify({ target: rule.target, hours: 24 })
        const bought = await buyer.buy(service(), { method: 'POST', path, raw })
        const pass = await readReceipt(service(), bought)
        expect(pass).toMatchObject({
          measured: [{ ...item, by: 'pass', hours: 24, charged: '500' }],
          pass: { ...item, hours: 24 },
        })
        expect(pass.budget).toBeUndefined()
      })
    },
    { devnet: true },
  ))
