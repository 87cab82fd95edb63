import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import type { PaymentMethod } from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Escrow } from '../../packages/server/src/x402/channels/escrow.ts'
import {
  ask,
  createFundedBuyer,
  list,
  name,
  type PaymentHeader,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { expectBalanced, openMarket } from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'
import { makeChannelBuyer } from './channel-buyer.ts'
import { replacePayments } from './dying-payments.ts'

withService(
  (service) => {
    /** Has the network answer nothing about payments and channels until the gate opens. */
    const closeGate = () => {
      const { ports } = service().running.service.payments
      let open: () => void = () => undefined
      const opened = new Promise<void>((resolve) => {
        open = resolve
      })
      const methods = ports.methods.map((method): PaymentMethod => {
        const { facilitator, escrow } = method
        const verify: typeof facilitator.verify = async (...given) => {
          await opened
          return facilitator.verify(...given)
        }
        const readState: Escrow['readState'] = async (...given) => {
          await opened
          return requirePresent(escrow, 'an escrow').readState(...given)
        }
        return {
          ...method,
          facilitator: { ...facilitator, verify },
          ...(escrow && { escrow: { ...escrow, readState } }),
        }
      })
      const payments = new Payments({ ...ports, methods })
      replacePayments(service(), payments)
      const openAgain = () => {
        open()
        replacePayments(service(), new Payments(ports))
      }
      return { open: openAgain, payments }
    }

    /** Waits until so many are answered, and tells which. */
    const awaitSome = async (replies: readonly Promise<TestReply>[], count: number) => {
      const early = new Map<number, TestReply>()
      replies.forEach((reply, at) => void reply.then((one) => early.set(at, one)))
      while (early.size < count) await new Promise((resolve) => setTimeout(resolve, 10))
      return early
    }

    const expectPending = (replies: Iterable<TestReply>) => {
      for (const { status, body, headers } of replies) {
        expect([status, body.code]).toEqual([503, 'PAYMENT_PENDING'])
        expect(headers.get('retry-after')).toBe('2')
      }
    }

    const settle = (header: PaymentHeader, quoteId: string) => {
      const paymentPayload = JSON.parse(
        Buffer.from(header['payment-signature'] ?? '', 'base64').toString(),
      )
      const accepted = { ...paymentPayload.accepted, extra: { quoteId } }
      return service().request('POST', '/api/payments/settle', {
        body: {
          x402Version: 2,
          paymentPayload: { ...paymentPayload, accepted },
          paymentRequirements: accepted,
        },
      })
    }

    test('one payment in twenty forms has nine of them wait; the others are told at once, and a repeated one waits with the first', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = await createFundedBuyer(service())
      const required = await quote(service(), list({ root: market.root, limit: 5 }))
      const header = await buyer.payV2(required, {
        ...{ authorization: { value: '5000' }, accepted: { amount: '5000' } },
      })
      const gate = closeGate()
      const forms = Array.from({ length: 20 }, (_, at) => settle(header, `form ${at}`))
      const early = await awaitSome(forms, 11)
      expectPending(early.values())
      const waiting = [...forms.keys()].filter((at) => !early.has(at))
      expect(waiting).toHaveLength(9)
      const again = waiting.map((at) => settle(header, `form ${at}`))
      const another = await settle(header, 'another form')
      expectPending([another])
      gate.open()
      const all = await Promise.all([...waiting.map((at) => forms[at]), ...again])
      expect(all.filter((one) => one?.body.success === true).length).toBeGreaterThan(0)
      expect(all.filter((one) => one?.body.code === 'PAYMENT_PENDING')).toEqual([])
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      expect(gate.payments.countInFlight()).toBe(0)
      await expectBalanced(service())
    })

    test('of twenty payments of one name seventeen wait for each other, and those that were refused get the same answer when they come again', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, limit: 1 })
      const signed = await Promise.all(
        Array.from({ length: 20 }, async () =>
          name(await buyer.payV2(await quote(service(), asked)), 'one_name_of_twenty_payments'),
        ),
      )
      const headers = signed.map((one) => ({ ...one, 'x-balance': 'off' }))
      const gate = closeGate()
      const sent = headers.map((header) => ask(service(), asked, header))
      expectPending((await awaitSome(sent, 3)).values())
      gate.open()
      const statuses = (await Promise.all(sent)).map(({ status }) => status)
      expect(statuses.filter((status) => status === 200)).toHaveLength(17)
      for (const header of headers) expect((await ask(service(), asked, header)).status).toBe(200)
      await expectBalanced(service())
    })

    test('a channel has 64 requests wait for the one that it pays for, and the next ones are told at once', async () => {
      const { root } = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = await makeChannelBuyer(service())
      expect((await buyer.list({ root, limit: 1 })).status).toBe(200)
      const two = list({ root, limit: 2 })
      const header = await buyer.sign(two)
      const gate = closeGate()
      const sent = Array.from({ length: 70 }, (_, at) =>
        ask(service(), { ...two, raw: `${two.raw}${' '.repeat(at)}` }, header),
      )
      const early = await awaitSome(sent, 5)
      expectPending(early.values())
      const again = [...sent.keys()].find((at) => !early.has(at)) ?? 0
      const repeated = ask(service(), { ...two, raw: `${two.raw}${' '.repeat(again)}` }, header)
      gate.open()
      const replies = await Promise.all([...sent, repeated])
      expect(replies.filter(({ status }) => status === 503)).toHaveLength(5)
      const meant = await ask(service(), two, header)
      expect(meant.status, meant.text).toBe(200)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)
