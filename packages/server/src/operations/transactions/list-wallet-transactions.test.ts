import { createFundedBuyer, depositing, list } from '@tollbase/testing/buyer'
import { openMarket } from '@tollbase/testing/market'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { askSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'

describe('listWalletTransactions', () =>
  withService(
    (service) => {
      test('a wallet has its payments, deposits, withdrawals and refunds in one list, newest first, page by page, as JSON and CSV', async () => {
        const market = await openMarket(service(), { price: { per_row: '100' } })
        const buyer = await createFundedBuyer(service(), 500_000n)
        const wallet = makeTestWallet(buyer.account)
        const path = `/api/wallets/${buyer.address}/transactions`
        const read = (query = '') =>
          askSigned(service(), wallet, { method: 'GET', path: `${path}${query}` })
        expect((await read()).body).toEqual({ transactions: [], next_cursor: null })
        const deposit = await buyer.buy(service(), depositing(buyer.address, '150000'))
        const bought = await buyer.buy(service(), list({ root: market.root, limit: 2 }))
        expect([deposit.status, bought.status], bought.text).toEqual([200, 200])
        const sales = await service().request('GET', `/api/apps/${market.appId}/sales`, {
          headers: market.headers,
        })
        const { payment_id } = sales.body.sales[0]
        const refund = await service().request(
          'POST',
          `/api/apps/${market.appId}/sales/${payment_id}/refund`,
          { headers: market.headers, body: { amount: '50' } },
        )
        expect(refund.status, refund.text).toBe(200)
        const withdrawal = await askSigned(service(), wallet, {
          ...{ method: 'POST', path: `/api/wallets/${buyer.address}/withdraw` },
          body: { amount: 120_000 },
        })
        expect(withdrawal.status, withdrawal.text).toBe(202)
        const ids = [
          withdrawal.body.withdrawal_id,
          refund.body.refund_id,
          payment_id,
          deposit.body.payment_id,
        ]
        const { body } = await read()
        expect(body.transactions.map((one: Json) => one.id)).toEqual(ids)
        expect(body.transactions.map((one: Json) => one.kind)).toEqual([
          ...['withdrawal', 'refund', 'payment', 'deposit'],
        ])
        expect(body.transactions[2]).toMatchObject({
          ...{ status: 'confirmed', app_id: market.appId, operation: 'list', amount: '200' },
          links: { payment: `/api/payments/${payment_id}` },
        })
        const paged: string[] = []
        for (let cursor: string | null = ''; cursor !== null; ) {
          const page = await read(`?limit=1${cursor && `&cursor=${cursor}`}`)
          expect(page.status, page.text).toBe(200)
          paged.push(...page.body.transactions.map((one: Json) => one.id))
          cursor = page.body.next_cursor
        }
        expect(paged).toEqual(ids)
        const csv = await read('?format=csv')
        expect(
          csv.text
            .split('\r\n')
            .slice(1, -1)
            .map((line: string) => line.split(',')[0]),
        ).toEqual(ids)
      })

      test('the list is for the wallet’s own signature and the operator, and a cursor of another list is refused', async () => {
        const [own, other] = [makeTestWallet(), makeTestWallet()]
        const path = `/api/wallets/${own.address}/transactions`
        expect((await askSigned(service(), other, { method: 'GET', path })).status).toBe(403)
        expect((await service().request('GET', path)).status).toBe(401)
        const asked = await service().request('GET', path, { headers: service().operator })
        expect(asked.body).toEqual({ transactions: [], next_cursor: null })
        const wrong = await askSigned(service(), own, { method: 'GET', path: `${path}?cursor=1` })
        expect([wrong.status, wrong.body.details?.field]).toEqual([400, '/query/cursor'])
      })
    },
    { devnet: true },
  ))
