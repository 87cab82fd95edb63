import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { listEndedClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import type { PaymentMethod } from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Facilitator } from '../../packages/server/src/x402/facilitator.ts'
import { ask, list, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readChainBalance,
  readEarnings,
  store,
} from '../support/market.ts'
import { connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import { replacePayments } from './dying-payments.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

const funds = 20_000_000n
/** Longer than the permit is good for, with the margins of clocks. */
const lateMs = 7_200_000

/** A method by which no permit is sent: its payer has others under way. */
function makeBusy({ upto, ...method }: PaymentMethod): PaymentMethod {
  if (upto === undefined) return method
  const reason = 'payer_has_others_under_way'
  const settle: Facilitator['settle'] = async () => ({ state: 'pending', reason, isUnsent: true })
  return { ...method, upto: { ...upto, settle } }
}

withService(
  (service) => {
    test('a permit that was not sent is brought again for an answer that costs less by now: it takes what its claim says, and the rest is change', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = await makeUptoBuyer(service())
      const asked = list({ root: market.root, limit: 9 })
      const header = await buyer.sign(asked)
      const { ports } = service().running.service.payments
      replacePayments(service(), new Payments({ ...ports, methods: ports.methods.map(makeBusy) }))
      expect((await ask(service(), asked, header)).status).toBe(503)
      replacePayments(service(), new Payments(ports))
      await store(service(), market, [{ id: 'c1', deleted: true }])
      const again = await ask(service(), asked, header)
      expect(again.status, again.text).toBe(200)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds - 5000n)
      expect(await readBalance(service(), buyer.address)).toBe(1000n)
      await expectBalanced(service())
      const report = await service().whileStopped((config) => audit(config, () => undefined))
      expect(report).toMatchObject({ equal: true })
    })

    // The chain's clock goes on two hours here, so it comes last.
    test('a permit that ends before it is sent takes nothing, costs no gas, gives no answer, and buys nothing later', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await makeUptoBuyer(service())
      const asked = list({ root: market.root, limit: 9 })
      const header = await buyer.sign(asked)
      const outcomes: unknown[] = []
      const { ports } = service().running.service.payments
      // The time passes between the check and the sending.
      const late = ({ upto, ...method }: PaymentMethod): PaymentMethod => {
        if (upto === undefined) return method
        const settle: Facilitator['settle'] = async (...given) => {
          service().world.advance(lateMs)
          const outcome = await upto.settle(...given)
          outcomes.push(outcome)
          return outcome
        }
        return { ...method, upto: { ...upto, settle } }
      }
      try {
        replacePayments(service(), new Payments({ ...ports, methods: ports.methods.map(late) }))
        const reply = await ask(service(), asked, header)
        replacePayments(service(), new Payments(ports))
        expect(reply.status, reply.text).toBe(402)
        expect(reply.text).not.toContain('Wien')
        // The chain itself is not past its end, so nobody says that it can never be made.
        expect(outcomes).toEqual([{ state: 'failed', reason: 'not_sent', final: false }])
        await connectDevnet(service()).increaseTime({ seconds: lateMs / 1_000 })
        await connectDevnet(service()).mine({ blocks: 1 })
        const again = await ask(service(), asked, header)
        expect([again.status, again.text]).toEqual([402, expect.stringContaining('expired')])
        const page = {
          ...{ beforeSeconds: Math.floor(service().world.now() / 1_000) },
          ...{ after: { at: -1n, id: '' }, limit: 100 },
        }
        const { payments } = service().running.service
        for (const claim of await listEndedClaims(service().database, page))
          await payments.reconcile(claim)
        const rows = await service().database.query(sql`
          SELECT claim.state, journal.id FROM operations.claim AS claim
          LEFT JOIN operations.transaction_journal AS journal ON journal.id = claim.id
          WHERE split_part(claim.identity, '/', 3) = ${buyer.address}`)
        expect(rows).toEqual([{ state: 'void', id: null }])
      } finally {
        service().world.advance(-lateMs)
      }
      expect(await readChainBalance(service(), buyer.address)).toBe(funds)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
