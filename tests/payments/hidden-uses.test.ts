import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { takeRareLooks } from '../../packages/server/src/services/payments/claims/rare-looks.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { openMarket } from '../support/market.ts'
import { handIn } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import { replacePayments } from './dying-payments.ts'
import { replaceFacilitators } from './false-facilitators.ts'

withService(
  (service) => {
    test('money that somebody brought to us where nobody can look at it is never over, is looked at ever more rarely, and counts once it is seen', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const { ports } = service().running.service.payments
      let isSeen = false
      let looks = 0
      const transaction = `0x${'8'.repeat(64)}`
      const hidden = {
        state: 'pending',
        reason: 'hidden',
        transaction,
        usedIn: transaction,
      } as const
      const blind = replaceFacilitators(ports, (real) => ({
        settle: async () => hidden,
        lookup: async (...given) => {
          looks += 1
          return isSeen ? real.lookup(...given) : hidden
        },
      }))
      const payments = new Payments(blind)
      replacePayments(service(), payments)
      const buyer = await createFundedBuyer(service(), 500n)
      const wanted = list({ root: market.root, limit: 3 })
      const paid = { ...(await buyer.payV2(await quote(service(), wanted))), 'x-balance': 'off' }
      const { body } = await ask(service(), wanted, paid)
      expect(body.code).toBe('PAYMENT_PENDING')
      const id = body.details.payment_id
      const reconcileFor = async (ms: number) => {
        looks = 0
        for (let n = 0; n < 100; n++) {
          service().world.advance(ms / 100)
          const nowMs = service().world.now()
          const page = { olderThanMs: nowMs, after: { at: -1n, id: '' }, limit: 100 }
          const open = await listOpenClaims(ports.database, page)
          for (const claim of open.concat(await takeRareLooks(ports.database, nowMs)))
            await payments.reconcile(claim)
        }
        return looks
      }
      await service().database.execute(sql`
        UPDATE operations.claim SET valid_before = ${Math.floor(service().world.now() / 1000)} WHERE id = ${id}`)
      const hour = 3_600_000
      expect(await reconcileFor(hour)).toBeGreaterThan(20)
      const day = await reconcileFor(24 * hour)
      expect(day).toBeGreaterThan(20)
      expect(await reconcileFor(24 * hour)).toBeLessThan(day / 2)
      expect((await findClaim(ports.database, { id }))?.state).toBe('claimed')
      await handIn(service(), paid)
      isSeen = true
      await reconcileFor(10 * hour)
      expect((await findClaim(ports.database, { id }))?.state).toBe('deposited')
      expect(await readBalance(service(), buyer.address)).toBe(300n)
      service().world.advance(-59 * hour)
    })
  },
  { devnet: true },
)
