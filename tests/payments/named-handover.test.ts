import { generatePaymentId } from '@x402/extensions/payment-identifier'
import { expect, test } from 'vitest'
import type { Database } from '../../packages/server/src/database/database.ts'
import type { PaymentPorts } from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Settlement } from '../../packages/server/src/x402/facilitator.ts'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  name,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { expectBalanced, openMarket, readChainBalance } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import { replacePayments, whileRefused } from './dying-payments.ts'
import { makeSettlingPayments } from './while-settling.ts'

/** The payments of a process that stops after it has looked for the name of a payment that it is about to take. */
function makeSlowPayments(ports: PaymentPorts) {
  const [reached, opened] = [makeGate(), makeGate()]
  let looksLeft = Number.POSITIVE_INFINITY
  const database: Database = {
    ...ports.database,
    query: async (statement, options) => {
      const rows = await ports.database.query(statement, options)
      if (!statement.text.includes('WHERE payment_identifier =')) return rows as never
      looksLeft -= 1
      if (looksLeft !== 0) return rows as never
      reached.open()
      await opened.passed
      return rows as never
    },
  }
  const slow = (look: number) => {
    looksLeft = look
  }
  const payments = new Payments({ ...ports, database })
  return { payments, slow, reached: reached.passed, open: opened.open }
}

function makeGate() {
  let open = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

/** The payments of a process that asks the network to settle only once it is let; `outcome` is in place of its answer. */
function makeWaitingPayments(ports: PaymentPorts, outcome?: Settlement) {
  const [reached, opened] = [makeGate(), makeGate()]
  const payments = makeSettlingPayments(ports, async (settle) => {
    reached.open()
    await opened.passed
    return outcome ?? settle()
  })
  return { payments, reached: reached.passed, open: opened.open }
}

type Way = 'its own money' | 'a balance' | 'its own money, tried before'

withService(
  (service) => {
    const sign = async (buyer: Buyer, asked: Asked, { id, way }: { id: string; way: Way }) => {
      const header = name(await buyer.payV2(await quote(service(), asked)), id)
      return way === 'a balance' ? header : { ...header, 'x-balance': 'off' }
    }
    const paid = async (buyer: Buyer) =>
      100_000_000n -
      (await readChainBalance(service(), buyer.address)) -
      (await readBalance(service(), buyer.address))

    /** The network refuses the payment once. */
    const fail = async (header: PaymentHeader, asked: Asked) => {
      await whileRefused(service(), async () => {
        expect((await ask(service(), asked, header)).status).toBe(402)
      })
    }

    const cases: readonly (readonly [Way, Way])[] = [
      ['its own money', 'its own money'],
      ['its own money', 'a balance'],
      ['a balance', 'a balance'],
      ['a balance', 'its own money'],
      ['its own money', 'its own money, tried before'],
    ]

    test.each(cases)(
      'of two processes that take a payment of one name each, of %s and of %s, one sells, and both give its answer',
      async (one, other) => {
        const { root } = await openMarket(service(), { price: { per_row: '1000' } })
        const asked = list({ root, limit: 2 })
        const buyer = await createFundedBuyer(service())
        const deposited = await buyer.buy(service(), depositing(buyer.address, '50000'))
        expect(deposited.status, deposited.text).toBe(200)
        const { ports } = service().running.service.payments
        const second = makeSlowPayments(ports)
        replacePayments(service(), second.payments)
        // Both processes know the balance from a purchase of before.
        const [before, id] = [generatePaymentId(), generatePaymentId()]
        const known = await ask(
          service(),
          asked,
          await sign(buyer, asked, { id: before, way: 'a balance' }),
        )
        expect(known.status, known.text).toBe(200)
        expect(await paid(buyer)).toBe(2_000n)
        const late = await sign(buyer, asked, { id, way: other })
        const isTried = other === 'its own money, tried before'
        if (isTried) await fail(late, asked)
        // The first look for a new payment is for an answer that was sold before.
        second.slow(isTried ? 1 : 2)
        replacePayments(service(), second.payments)
        const answer = ask(service(), asked, late)
        await second.reached
        replacePayments(service(), new Payments(ports))
        const first = await ask(service(), asked, await sign(buyer, asked, { id, way: one }))
        expect(first.status, first.text).toBe(200)
        second.open()
        const { status, body, text } = await answer
        expect([status, body.code], text).toEqual([503, 'PAYMENT_PENDING'])
        expect(body.details.payment_id).toBe(first.headers.get('x-payment-id'))
        const again = await ask(service(), asked, late)
        expect([again.status, again.text]).toEqual([200, first.text])
        expect(await paid(buyer)).toBe(4_000n)
        await expectBalanced(service())
      },
    )

    test.each<Settlement>([
      { state: 'pending', reason: 'payer_has_others_under_way', isUnsent: true },
      { state: 'failed', reason: 'for now', final: false },
    ])(
      'a payment that one process gives up ($state) while another one still tries it keeps its name, and is sold once under it',
      async (outcome) => {
        const { root } = await openMarket(service(), { price: { per_row: '1000' } })
        const asked = list({ root, limit: 2 })
        const buyer = await createFundedBuyer(service())
        const { ports } = service().running.service.payments
        const id = generatePaymentId()
        const header = await sign(buyer, asked, { id, way: 'its own money' })
        const [early, later] = [makeWaitingPayments(ports, outcome), makeWaitingPayments(ports)]
        const answers = []
        for (const process of [early, later]) {
          replacePayments(service(), process.payments)
          answers.push(ask(service(), asked, header))
          await process.reached
        }
        early.open()
        const [given, sold] = answers
        expect((await given)?.status).toBe(503)
        later.open()
        expect((await sold)?.status).toBe(200)
        replacePayments(service(), new Payments(ports))
        const anew = await sign(buyer, asked, { id, way: 'its own money' })
        const again = await ask(service(), asked, anew)
        expect([again.status, again.text]).toEqual([200, (await sold)?.text])
        expect(await paid(buyer)).toBe(2_000n)
        await expectBalanced(service())
      },
    )
  },
  { devnet: true },
)
