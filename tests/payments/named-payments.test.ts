import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import {
  appendPaymentIdentifierToExtensions,
  generatePaymentId,
  validatePaymentIdentifier,
} from '@x402/extensions/payment-identifier'
import { wrapFetchWithPayment } from '@x402/fetch'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import {
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
import { handIn } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { makeDyingPayments, replacePayments, whileRefused } from './dying-payments.ts'

const decode = (text: string): Json => JSON.parse(Buffer.from(text, 'base64').toString())
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64')

withService(
  (service) => {
    const markets = () => openMarket(service(), { price: { per_row: '1000' } })
    const sign = async (
      buyer: Buyer,
      asked: ReturnType<typeof list>,
      id: unknown,
    ): Promise<PaymentHeader> => {
      const header = await buyer.payV2(await quote(service(), asked))
      return { ...name(header, id), 'x-balance': 'off' }
    }
    const paid = async (buyer: Buyer) =>
      100_000_000n - (await readChainBalance(service(), buyer.address))

    test('a stock client that names its request pays once, though it signs anew, and gets the same answer', async () => {
      const { root } = await markets()
      const buyer = await createFundedBuyer(service())
      const id = generatePaymentId()
      const buy = async (limit: number) => {
        const client = new x402Client().register('eip155:84532', new ExactEvmScheme(buyer.account))
        client.onBeforePaymentCreation(async ({ paymentRequired }) => {
          const { extensions = {} } = paymentRequired
          expect(validatePaymentIdentifier(extensions['payment-identifier'])).toEqual({
            valid: true,
          })
          appendPaymentIdentifierToExtensions(extensions, id)
        })
        const headers = { 'content-type': 'application/json' }
        const body = JSON.stringify({ root, limit })
        const pay = wrapFetchWithPayment(fetch, client)
        const reply = await pay(`${service().url}/list`, { method: 'POST', headers, body })
        return { status: reply.status, text: await reply.text(), headers: reply.headers }
      }
      const first = await buy(3)
      expect(first.status, first.text).toBe(200)
      const again = await buy(3)
      expect([again.status, again.text]).toEqual([200, first.text])
      expect(again.headers.get('x-payment-id')).toBe(first.headers.get('x-payment-id'))
      expect(decode(again.headers.get('payment-response') ?? '').transaction).toBe(
        decode(first.headers.get('payment-response') ?? '').transaction,
      )
      const other = await buy(2)
      expect([other.status, JSON.parse(other.text).code]).toEqual([409, 'IDEMPOTENCY_KEY_USED'])
      expect(await paid(buyer)).toBe(3_000n)
      await expectBalanced(service())
    })

    test('of ten payments of one name at once, one is made; a name belongs to its payer', async () => {
      const { root } = await markets()
      const asked = list({ root, limit: 2 })
      const [buyer, other] = [
        await createFundedBuyer(service()),
        await createFundedBuyer(service()),
      ]
      const id = generatePaymentId()
      const headers = []
      for (let n = 0; n < 10; n++) headers.push(await sign(buyer, asked, id))
      headers.push(await sign(other, asked, id))
      const replies = await Promise.all(headers.map((one) => ask(service(), asked, one)))
      expect(replies.map(({ status }) => status)).toEqual(Array(11).fill(200))
      expect(
        new Set(replies.slice(0, 10).map(({ headers }) => headers.get('x-payment-id'))).size,
      ).toBe(1)
      expect([await paid(buyer), await paid(other)]).toEqual([2_000n, 2_000n])
      await expectBalanced(service())
    })

    test('only a fresh signature of the payer gets what its name bought', async () => {
      const { root } = await markets()
      const asked = list({ root, limit: 2 })
      const buyer = await createFundedBuyer(service())
      const thief = await createFundedBuyer(service())
      const id = generatePaymentId()
      const first = await ask(service(), asked, await sign(buyer, asked, id))
      expect(first.status, first.text).toBe(200)
      // The thief's signature under the address of the payer.
      const forged = decode((await sign(thief, asked, id))['payment-signature'] ?? '')
      forged.payload.authorization.from = buyer.address
      const refused = await ask(service(), asked, { 'payment-signature': encode(forged) })
      expect(refused.status).toBe(402)
      // Signatures of the payer that were for somebody else, or are over: other services have seen them.
      const required = await quote(service(), asked)
      for (const authorization of [{ to: thief.address }, { validAfter: 0, validBefore: 1 }]) {
        const elsewhere = name(await buyer.payV2(required, { authorization }), id)
        const kept = await ask(service(), asked, { ...elsewhere, 'x-balance': 'off' })
        expect(kept.status, kept.text).toBe(402)
      }
      // A signature that the chain has shown to everybody.
      const seen = await sign(buyer, asked, id)
      await handIn(service(), seen)
      const late = await ask(service(), asked, seen)
      expect(late.status, late.text).toBe(402)
      expect(await readBalance(service(), buyer.address)).toBe(2_000n)
      await expectBalanced(service())
    })

    test('a payment that died under its name is found by the next one: bought once, wherever the first stopped', async () => {
      const { root } = await markets()
      const asked = list({ root, limit: 2 })
      for (let step = 0, isOver = false; !isOver && step < 40; step++) {
        const buyer = await createFundedBuyer(service())
        const id = generatePaymentId()
        const { payments } = service().running.service
        const dying = makeDyingPayments(payments.ports, { step, when: 'after' })
        const header = await sign(buyer, asked, id)
        replacePayments(service(), dying.payments)
        await ask(service(), asked, header)
        isOver = dying.steps().length <= step
        replacePayments(service(), new Payments(payments.ports))
        let reply = await ask(service(), asked, await sign(buyer, asked, id))
        // Its own request ends what was begun.
        if (reply.status === 503) {
          expect(reply.body.code).toBe('PAYMENT_PENDING')
          expect((await ask(service(), asked, header)).status).toBe(200)
          reply = await ask(service(), asked, await sign(buyer, asked, id))
        }
        expect(reply.status, `${step} ${reply.text}`).toBe(200)
        const last = await ask(service(), asked, header)
        expect([last.status, last.text], `${step}`).toEqual([200, reply.text])
        expect(await paid(buyer), `step ${step}`).toBe(2_000n)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
      }
      await expectBalanced(service())
    }, 120_000)

    test('the answer of a name is given again whatever has become of its collection, and nothing is taken', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const asked = list({ root: market.root, limit: 2 })
      const buyer = await createFundedBuyer(service())
      const id = generatePaymentId()
      const first = await ask(service(), asked, await sign(buyer, asked, id))
      expect(first.status, first.text).toBe(200)
      const late = await sign(buyer, asked, id)
      const unnamed = await buyer.payV2(await quote(service(), asked))
      const path = `/api/apps/${market.appId}/collections/${market.collection}`
      const gone = await service().request('DELETE', path, { headers: market.headers })
      expect(gone.status).toBeLessThan(300)
      expect((await ask(service(), asked, unnamed)).status).toBe(404)
      const other = await createFundedBuyer(service())
      const forged = decode(late['payment-signature'] ?? '')
      forged.payload.authorization.from = other.address
      expect((await ask(service(), asked, { 'payment-signature': encode(forged) })).status).toBe(
        404,
      )
      const again = await ask(service(), asked, late)
      expect([again.status, again.text]).toEqual([200, first.text])
      expect(await paid(buyer)).toBe(2_000n)
    })

    test('a payment that failed and is brought under another name has that one, and the first is free', async () => {
      const { root } = await markets()
      const asked = list({ root, limit: 2 })
      const buyer = await createFundedBuyer(service())
      const [before, id] = [generatePaymentId(), generatePaymentId()]
      const header = await sign(buyer, asked, before)
      await whileRefused(service(), async () => {
        expect((await ask(service(), asked, header)).status).toBe(402)
      })
      const first = await ask(service(), asked, name(header, id))
      expect(first.status, first.text).toBe(200)
      const again = await ask(service(), asked, await sign(buyer, asked, id))
      expect([again.status, again.text]).toEqual([200, first.text])
      expect(await paid(buyer)).toBe(2_000n)
      const other = list({ root, limit: 1 })
      const fresh = await ask(service(), other, await sign(buyer, other, before))
      expect(fresh.status, fresh.text).toBe(200)
      expect(await paid(buyer)).toBe(3_000n)
    })

    test('a payment that is only settled has no name, and a deposit to a wallet is made once under its own', async () => {
      const { root } = await markets()
      const asked = list({ root, limit: 2 })
      const buyer = await createFundedBuyer(service())
      const id = generatePaymentId()
      const paymentPayload = decode((await sign(buyer, asked, id))['payment-signature'] ?? '')
      const body = { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted }
      const settled = await service().request('POST', '/api/payments/settle', { body })
      expect(settled.body, settled.text).toMatchObject({ success: true })
      const bought = await ask(service(), asked, await sign(buyer, asked, id))
      expect(bought.status, bought.text).toBe(200)
      expect(await paid(buyer)).toBe(4_000n)
      const deposit = depositing(buyer.address, '5000')
      const named = generatePaymentId()
      const first = await ask(service(), deposit, await sign(buyer, deposit, named))
      expect(first.status, first.text).toBe(200)
      const again = await ask(service(), deposit, await sign(buyer, deposit, named))
      expect([again.status, again.text]).toEqual([200, first.text])
      expect(await paid(buyer)).toBe(9_000n)
      await expectBalanced(service())
    })

    test('an id has 16 to 128 letters, digits, "-" or "_", and an extension without one is none', async () => {
      const { root } = await markets()
      const asked = list({ root, limit: 1 })
      const buyer = await createFundedBuyer(service())
      for (const [id, status] of [
        ['a'.repeat(15), 400],
        ['a'.repeat(129), 400],
        ['a'.repeat(16).replace('a', ' '), 400],
        [7, 400],
        ['a'.repeat(16), 200],
        ['a'.repeat(128), 200],
        [undefined, 200],
      ] as const) {
        const reply = await ask(service(), asked, await sign(buyer, asked, id))
        expect(reply.status, reply.text).toBe(status)
        if (status === 400) expect(reply.body.code).toBe('PAYMENT_MALFORMED')
      }
      const names = await service().database.query<{ name: string | null }>(
        sql`SELECT payment_identifier AS name FROM operations.claim WHERE identity LIKE ${`%${buyer.address}%`} ORDER BY 1`,
      )
      expect(names.map((one) => one.name)).toEqual(['a'.repeat(16), 'a'.repeat(128), null])
    })
  },
  { devnet: true },
)
