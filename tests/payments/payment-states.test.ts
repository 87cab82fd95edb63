import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import type { PaymentPorts } from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Settlement } from '../../packages/server/src/x402/facilitator.ts'
import { ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, readEarnings } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { makeDyingPayments, replacePayments } from './dying-payments.ts'
import { replaceFacilitators } from './false-facilitators.ts'

withService(
  (service) => {
    test('a process that hears of no settlement asks nobody to pay again where another one has sold', async () => {
      const { market, asked, header } = await openScene(service())
      const { ports } = service().running.service.payments
      const sold: string[] = []
      const late = withOutcome(ports, async (outcome) => {
        expect(outcome.state).toBe('settled')
        replacePayments(service(), new Payments(ports))
        const reply = await ask(service(), asked, header)
        expect(reply.status, reply.text).toBe(200)
        sold.push(reply.text)
        return { state: 'failed', reason: 'no reason', final: false }
      })
      replacePayments(service(), new Payments(late))
      const reply = await ask(service(), asked, header)
      expect(reply.status, reply.text).toBe(503)
      expect(reply.body.code).toBe('PAYMENT_PENDING')
      expect((await ask(service(), asked, header)).text).toBe(sold[0])
      expect(await readEarnings(service(), market)).toBe(240n)
      await expectBalanced(service())
    })

    test('an answer that is kept is owed, though another process gave the payment up meanwhile', async () => {
      const { market, buyer, asked, header } = await openScene(service())
      const { ports } = service().running.service.payments
      const givenUp = withOutcome(ports, async (outcome, id) => {
        const change = sql`UPDATE operations.claim SET state = 'void' WHERE id = ${id}`
        expect(await ports.database.execute(change)).toBe(1)
        return outcome
      })
      // Overtaken, it reads the claim, and keeps the answer once more.
      const step = (await findAppend(service())) + 2
      const dying = makeDyingPayments(givenUp, { step, when: 'before' })
      replacePayments(service(), dying.payments)
      expect((await ask(service(), asked, header)).status).toBeGreaterThan(499)
      expect(dying.steps().at(-1)).toBe('append')
      const fresh = new Payments(ports)
      replacePayments(service(), fresh)
      await reconcileAll(fresh)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect((await ask(service(), asked, header)).status).toBe(200)
      expect(await readEarnings(service(), market)).toBe(240n)
      await expectBalanced(service())
    })

    test('a sale from a balance is marked as delivered when it is asked for again, though its mark was lost', async () => {
      const { asked, header } = await openScene(service())
      const { ports } = service().running.service.payments
      const silent = withOutcome(ports, async () => ({ state: 'pending', reason: 'silent' }))
      replacePayments(service(), new Payments(silent))
      const pending = await ask(service(), asked, header)
      expect(pending.body.code, pending.text).toBe('PAYMENT_PENDING')
      const id: string = pending.body.details.payment_id
      const state = async () => (await findClaim(ports.database, { id }))?.state
      // It has no upkeep, so it never marks.
      const forgetful = new Payments(ports)
      replacePayments(service(), forgetful)
      await reconcileAll(forgetful)
      expect(await state()).toBe('held')
      expect((await ask(service(), asked, header)).status).toBe(200)
      expect(await state()).toBe('owed')
      const marking = new Payments(ports)
      const end = marking.startUpkeep()
      replacePayments(service(), marking)
      expect((await ask(service(), asked, header)).status).toBe(200)
      await end()
      expect(await state()).toBe('sold')
    })

    test('money whose answer was lost waits for its request, and after a while it is for anything', async () => {
      const lost = []
      for (let n = 0; n < 2; n++) {
        const scene = await openScene(service())
        const { ports } = service().running.service.payments
        const silent = withOutcome(ports, async () => ({ state: 'pending', reason: 'silent' }))
        replacePayments(service(), new Payments(silent))
        const pending = await ask(service(), scene.asked, scene.header)
        expect(pending.body.code, pending.text).toBe('PAYMENT_PENDING')
        const fresh = new Payments(ports)
        replacePayments(service(), fresh)
        await reconcileAll(fresh)
        expect(await readBalance(service(), scene.buyer.address)).toBe(0n)
        lost.push({ ...scene, fresh })
      }
      const [waiting, left] = lost.map((one) => requirePresent(one, 'a lost answer'))
      // The next purchase of the same payer leaves it alone, and is settled on its own.
      const next = list({ root: waiting?.market.root, limit: 1 })
      const paid = await waiting?.buyer.payV2(await quote(service(), next))
      expect((await ask(service(), next, paid)).status).toBe(200)
      const { asked, header } = requirePresent(waiting, 'the first')
      expect((await ask(service(), asked, header)).status).toBe(200)
      service().world.advance(301_000)
      await reconcileAll(requirePresent(left, 'the second').fresh)
      expect(await readBalance(service(), left?.buyer.address ?? '')).toBe(300n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)

async function openScene(service: TestService) {
  const market = await openMarket(service, { price: { per_row: '100' } })
  const buyer = await createFundedBuyer(service)
  const asked = list({ root: market.root, limit: 3 })
  const paid = await buyer.payV2(await quote(service, asked))
  // Deaths are at a step of this number, and looks at the balance would count.
  return { market, buyer, asked, header: { ...paid, 'x-balance': 'off' } }
}

/** The ports with facilitators that settle for real, and then say what the function makes of it. */
function withOutcome(
  ports: PaymentPorts,
  judge: (outcome: Settlement, id: string) => Promise<Settlement>,
): PaymentPorts {
  return replaceFacilitators(ports, (real) => ({
    settle: async (...given) => judge(await real.settle(...given), given[0]),
  }))
}

/** Finds the step of a purchase at which the ledger is written. */
async function findAppend(service: TestService): Promise<number> {
  const { asked, header } = await openScene(service)
  const { payments } = service.running.service
  const whole = makeDyingPayments(payments.ports, undefined)
  replacePayments(service, whole.payments)
  expect((await ask(service, asked, header)).status).toBe(200)
  replacePayments(service, payments)
  const at = whole.steps().indexOf('append')
  return requirePresent(at < 0 ? undefined : at, 'an append')
}

async function reconcileAll(payments: Payments): Promise<void> {
  const { database } = payments.ports
  const page = { olderThanMs: Number.MAX_SAFE_INTEGER, after: { at: -1n, id: '' }, limit: 100 }
  for (const claim of await listOpenClaims(database, page)) await payments.reconcile(claim)
}
