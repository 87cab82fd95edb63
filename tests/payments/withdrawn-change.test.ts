import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { DepositBook } from '../../packages/server/src/services/payments/deposits/deposit-book.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { makeData } from '../support/data.ts'
import { expectBalanced, openMarket, readEarnings, setPrices } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'
import { runWhileSettling } from './while-settling.ts'

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

    test('A2: nothing is written for money that another process gives back while its request is under way', async () => {
      const market = await openMarket(service(), { records: [] })
      await setPrices(service(), market, [
        { operation: 'write', model: 'per_record', amount: '1000' },
      ])
      const buyer = await createFundedBuyer(service(), 1_000n)
      const raw = JSON.stringify({ root: market.root, data: [{ n: 1 }] })
      const asked = { method: 'POST', path: '/store?wait=true', raw, headers: market.headers }
      const payment = await buyer.payV2(await quote(service(), asked))
      const { ports } = service().running.service.payments
      /** Another process finds that the money is here, and that its request wrote nothing. */
      const giveBack = async () => {
        const [row] = await service().database.query<{ id: string; hash: string }>(sql`
          SELECT claim.id, sent.hash FROM operations.claim AS claim
          JOIN operations.transaction_journal AS sent ON sent.id = claim.id WHERE claim.state = 'claimed'`)
        const claim = row && (await findClaim(service().database, { id: row.id }))
        if (claim === undefined) throw new Error('nothing is under way')
        await new DepositBook(ports).book({ claim, transaction: row?.hash ?? '', isFresh: false })
      }
      const cut = await runWhileSettling(service(), { after: giveBack }, () =>
        ask(service(), asked, payment),
      )
      expect([cut.status, cut.body.code], cut.text).toEqual([503, 'PAYMENT_PENDING'])
      expect(await readBalance(service(), buyer.address)).toBe(1_000n)
      const written = await makeData(service(), market).list('cities')
      expect(written.body.records, written.text).toEqual([])
      const again = await ask(service(), asked, payment)
      expect(again.status, again.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
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
