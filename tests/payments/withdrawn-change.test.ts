import { expect, test } from 'vitest'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { makeData } from '../support/data.ts'
import { expectBalanced, openMarket, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

withService(
  (service) => {
    /** A payment whose request failed, so that its money is the payer's balance, and would be answered now. */
    async function openFailedSale() {
      const market = await openMarket(service(), {
        price: { per_kb: '1000' },
        records: [{ id: 'x', text: 'y'.repeat(3000) }],
      })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, max_kb: 1 })
      const payment = await buyer.payV2(await quote(service(), asked))
      expect((await ask(service(), asked, payment)).status).toBe(413)
      const balance = await readBalance(service(), buyer.address)
      expect(balance).toBeGreaterThan(0n)
      const stored = await makeData(service(), market).store('cities', [{ id: 'x', text: 'short' }])
      expect(stored.status).toBe(200)
      return {
        market,
        buyer,
        repeat: () => ask(service(), asked, payment),
        withdraw: () =>
          askSigned(service(), makeTestWallet(buyer.account), {
            ...{ method: 'POST', path: `/api/wallets/${buyer.address}/withdraw` },
            body: { amount: String(balance) },
          }),
      }
    }

    test('A2: money that was given back to its payer and was withdrawn buys nothing more', async () => {
      const { market, repeat, withdraw } = await openFailedSale()
      const withdrawn = await withdraw()
      expect(withdrawn.status, withdrawn.text).toBe(202)
      const later = await repeat()
      expect(later.status, later.text).toBeGreaterThanOrEqual(400)
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectBalanced(service())
    })

    test('A2: money that was given back is withdrawn or spent, and never both, whichever comes first', async () => {
      const sales = await Promise.all([1, 2, 3, 4].map(openFailedSale))
      const ends = await Promise.all(
        sales.map(async ({ repeat, withdraw }) =>
          Promise.all([repeat(), withdraw(), repeat()].map(async (one) => (await one).status)),
        ),
      )
      for (const [first, withdrawn, second] of ends) {
        const isSold = first === 200 || second === 200
        expect([isSold, withdrawn === 202], String([first, withdrawn, second])).toContain(true)
        expect(isSold && withdrawn === 202).toBe(false)
      }
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
