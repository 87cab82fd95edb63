import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Facilitator } from '../../packages/server/src/x402/facilitator.ts'
import { type Asked, ask, list, quote, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readChainBalance,
  readEarnings,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { type Death, makeDyingPayments, replacePayments } from './dying-payments.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

const stepsMax = 40
const funds = 20_000_000n

function makeGate() {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open: () => open(), opened }
}

withService(
  (service) => {
    const open = () => openMarket(service(), { price: { per_row: '100' } })
    const decode = (text: string): Json => JSON.parse(Buffer.from(text, 'base64').toString())
    const listSchemes = async (asked: Asked) => {
      const required = await quote(service(), asked)
      const { accepts } = decode(required.headers.get('payment-required') ?? '')
      return accepts.map(({ scheme }: { scheme: string }) => scheme)
    }

    /** Runs the work while payments are settled by another way. */
    const settleBy = async <T>(
      change: (settle: Facilitator['settle']) => Facilitator['settle'],
      work: () => Promise<T>,
    ): Promise<T> => {
      const { ports } = service().running.service.payments
      const methods = ports.methods.map(({ upto, ...method }) => ({
        ...method,
        ...(upto && { upto: { ...upto, settle: change(upto.settle) } }),
      }))
      replacePayments(service(), new Payments({ ...ports, methods }))
      try {
        return await work()
      } finally {
        replacePayments(service(), new Payments(ports))
      }
    }

    test('a stock client pays the true cost of each request, and nothing is left on a balance', async () => {
      const market = await open()
      const buyer = await makeUptoBuyer(service())
      // A cap of nine rows, of which five are there.
      const reply = await buyer.list({ root: market.root, limit: 9 })
      expect(reply.status, reply.text).toBe(200)
      expect(reply.notice).toMatchObject({ success: true, amount: '500', payer: buyer.address })
      expect(reply.notice.transaction).toMatch(/^0x[0-9a-f]{64}$/)
      expect(await readReceipt(service(), reply)).toMatchObject({
        ...{ amount: '500', deposited: '500', change: '0' },
      })
      expect((await buyer.list({ root: market.root, limit: 1 })).notice.amount).toBe('100')
      expect(await readChainBalance(service(), buyer.address)).toBe(funds - 600n)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(480n)
      await expectBalanced(service())
    })

    test('it is offered after exact, for reads, writes and passes, at plain and at metered prices', async () => {
      const market = await open()
      const all = ['exact', 'upto', 'batch-settlement']
      expect(await listSchemes(list({ root: market.root, limit: 2 }))).toEqual(all)
      await setPrices(service(), market, [
        { operation: 'write', model: 'per_record', amount: '1000' },
      ])
      const raw = JSON.stringify({ root: market.root, data: [{ id: 'new' }] })
      const store = { method: 'POST', path: '/store', raw, headers: market.headers }
      expect(await listSchemes(store)).toEqual(all)
      const target = { collection: market.collection }
      await setPrices(service(), market, [
        { operation: 'read', model: 'time_pass', hours: 24, amount: '5000' },
      ])
      const pass = {
        ...{ method: 'POST', path: `/api/apps/${market.appId}/passes` },
        raw: JSON.stringify({ target, hours: 24 }),
      }
      expect(await listSchemes(pass)).toEqual(all)
      expect(await listSchemes(list({ root: market.root, limit: 2 }))).toEqual(all)
    })

    test('a time pass is bought by it, and its true price is taken', async () => {
      const market = await open()
      await setPrices(service(), market, [
        { operation: 'read', model: 'per_row', amount: '100' },
        { operation: 'read', model: 'time_pass', hours: 24, amount: '5000' },
      ])
      const buyer = await makeUptoBuyer(service())
      const body = { target: { collection: market.collection }, hours: 24 }
      const bought = await buyer.post(`/api/apps/${market.appId}/passes`, body)
      expect(bought.status, bought.text).toBeLessThan(300)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds - 5000n)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(4000n)
      await expectBalanced(service())
    })

    test('an answer that was lost is given again, for its own request alone, and taken once', async () => {
      const market = await open()
      const buyer = await makeUptoBuyer(service())
      const asked = list({ root: market.root, limit: 9 })
      const header = await buyer.sign(asked)
      const replies = await Promise.all([1, 2, 3].map(() => ask(service(), asked, header)))
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200])
      const again = await ask(service(), asked, header)
      expect(again.text).toBe(replies[0]?.text)
      expect(again.headers.get('payment-response')).toBe(
        replies[0]?.headers.get('payment-response'),
      )
      const other = await ask(service(), list({ root: market.root, limit: 4 }), header)
      expect([402, 409]).toContain(other.status)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds - 500n)
    })

    test('nothing is taken for an error, nor for an answer that costs nothing', async () => {
      const records = [{ id: 'long', name: 'x'.repeat(5_000) }]
      const long = await openMarket(service(), { price: { per_kb: '100' }, records })
      const market = await open()
      const buyer = await makeUptoBuyer(service())
      const error = await buyer.list({ root: long.root, limit: 1, max_kb: 1 })
      expect(error.status, error.text).toBe(413)
      expect(JSON.parse(error.text).details.charged).toBe('0')
      const none = await buyer.list({ root: market.root, find: { name: 'Bonn' }, limit: 9 })
      expect(none.status, none.text).toBe(200)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds)
    })

    test('what is not signed for this service, this sum and this time, or not allowed, buys nothing', async () => {
      const market = await open()
      const buyer = await makeUptoBuyer(service())
      const asked = list({ root: market.root, limit: 2 })
      const header = await buyer.sign(asked)
      const sent = decode(Object.values(header)[0] ?? '')
      const send = (change: (one: Json) => void) => {
        const copy = structuredClone(sent)
        change(copy)
        const value = Buffer.from(JSON.stringify(copy)).toString('base64')
        return ask(service(), asked, { 'payment-signature': value })
      }
      const refused: ((permit: Json, one: Json) => void)[] = [
        (permit) => Object.assign(permit.witness, { facilitator: buyer.address }),
        (permit) => Object.assign(permit.witness, { to: buyer.address }),
        (permit) => Object.assign(permit, { deadline: '9999999999' }),
        (permit) => Object.assign(permit, { deadline: '1' }),
        (permit) => Object.assign(permit, { nonce: '7' }),
        (permit, one) => {
          permit.permitted.amount = '199'
          one.accepted.amount = '199'
        },
        (permit) => Object.assign(permit.permitted, { amount: '300' }),
        (_, one) => Object.assign(one.accepted, { network: 'eip155:8453' }),
        (_, one) => Object.assign(one.accepted.extra, { quoteId: 'none' }),
      ]
      for (const change of refused) {
        const reply = await send((one) => change(one.payload.permit2Authorization, one))
        expect(reply.status, `${change} ${reply.text}`).toBe(402)
      }
      const malformed = await send((one) => Object.assign(one.payload, { more: 1 }))
      expect(malformed.body.code).toBe('PAYMENT_MALFORMED')
      const stranger = await makeUptoBuyer(service(), 0n)
      const unallowed = await stranger.list({ root: market.root, limit: 2 })
      expect(unallowed.status).toBe(402)
      expect(unallowed.text).toContain('permit2_allowance_required')
      expect((await ask(service(), asked, header)).status).toBe(200)
      expect(await readEarnings(service(), market)).toBe(160n)
    })

    test('a payer who signs more at once than it allows pays for a part, and nothing reverts on our gas', async () => {
      const market = await open()
      const buyer = await makeUptoBuyer(service(), 250n)
      const asked = [1, 2, 3, 4].map((at) => ({
        ...list({ root: market.root, limit: 1 }),
        raw: `${JSON.stringify({ root: market.root, limit: 1 })}${' '.repeat(at)}`,
      }))
      const headers = await Promise.all(asked.map((one) => buyer.sign(one)))
      const replies = await Promise.all(
        asked.map((one, at) => ask(service(), one, headers[at] ?? {})),
      )
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(2)
      expect(replies.filter(({ status }) => status === 402)).toHaveLength(2)
      const reverted = await service().database.query(
        sql`SELECT id FROM operations.transaction_journal WHERE state = 'reverted'`,
      )
      expect(reverted).toEqual([])
    })

    test('a request that another process was paid for meanwhile is not asked for a second payment', async () => {
      const market = await open()
      const buyer = await makeUptoBuyer(service())
      const asked = list({ root: market.root, limit: 2 })
      const header = await buyer.sign(asked)
      const { ports } = service().running.service.payments
      const [reached, other] = [makeGate(), makeGate()]
      const methods = ports.methods.map(({ upto, ...method }) => {
        if (upto === undefined) return method
        const verify: Facilitator['verify'] = async (...given) => {
          const verdict = await upto.verify(...given)
          reached.open()
          await other.opened
          return verdict
        }
        return { ...method, upto: { ...upto, verify } }
      })
      replacePayments(service(), new Payments({ ...ports, methods }))
      const slow = ask(service(), asked, header)
      await reached.opened
      replacePayments(service(), new Payments(ports))
      const quick = await ask(service(), asked, header)
      other.open()
      expect(quick.status, quick.text).toBe(200)
      const late = await slow
      expect(late.status, late.text).toBe(503)
      expect((await ask(service(), asked, header)).text).toBe(quick.text)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds - 200n)
    })

    test('a payment that failed is not good for an old quote for as long as its permit', async () => {
      const market = await open()
      const buyer = await makeUptoBuyer(service())
      const asked = list({ root: market.root, limit: 2 })
      const header = await buyer.sign(asked, 3600)
      await settleBy(
        () => async () => ({ state: 'failed', reason: 'insufficient_balance', final: false }),
        async () => expect((await ask(service(), asked, header)).status).toBe(402),
      )
      const quoteMs = 302_000
      service().world.advance(quoteMs)
      try {
        const late = await ask(service(), asked, header)
        expect(late.status, late.text).toBe(402)
        expect(late.text).toContain('expired')
      } finally {
        service().world.advance(-quoteMs)
      }
      expect((await ask(service(), asked, header)).status).toBe(200)
    })

    test('a payer who makes payments fail after their check gets no answer, and may do so three times an hour', async () => {
      const market = await open()
      const buyer = await makeUptoBuyer(service())
      const asked = list({ root: market.root, limit: 2 })
      const replies = await settleBy(
        (settle) =>
          async (...given) => {
            await buyer.approve(0n)
            return settle(...given)
          },
        async () => {
          const said: string[] = []
          for (let at = 0; at < 4; at++) {
            const header = await buyer.sign(asked)
            const { status, text } = await ask(service(), asked, header)
            said.push(`${status} ${text}`)
            await buyer.approve(funds)
          }
          return said
        },
      )
      for (const text of replies.slice(0, 3)) expect(text).toMatch(/^402 .*transaction_reverted/s)
      expect(replies[3]).toMatch(/^402 .*failed_before/s)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds)
      const other = await makeUptoBuyer(service())
      expect((await other.list({ root: market.root, limit: 2 })).status).toBe(200)
    })

    test.each(['before', 'after'] as const)(
      'a payment survives a death %s each of its steps: the retry is answered, and its cost is taken once',
      async (when) => {
        const market = await open()
        const buyer = await makeUptoBuyer(service())
        let taken = 0n
        for (let step = 0; ; step++) {
          expect(step).toBeLessThan(stepsMax)
          const asked = list({ root: market.root, limit: 2 })
          const death: Death = { step, when }
          const header = await buyer.sign(asked)
          const { ports } = service().running.service.payments
          const dying = makeDyingPayments(ports, death)
          replacePayments(service(), dying.payments)
          await ask(service(), asked, header)
          replacePayments(service(), new Payments(ports))
          const again = await ask(service(), asked, header)
          const at = `${step}: ${dying.steps().join(', ')}`
          expect(again.status, `${at} ${again.text}`).toBe(200)
          taken += 200n
          expect(await readChainBalance(service(), buyer.address), at).toBe(funds - taken)
          if (dying.steps().length <= step) break
        }
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        expect(await readEarnings(service(), market)).toBe((taken * 8n) / 10n)
        await expectBalanced(service())
      },
    )

    test('where a payer does not come back after a death at any step, the money taken is its own or is sold', async () => {
      const market = await open()
      const buyer = await makeUptoBuyer(service())
      const { ports } = service().running.service.payments
      for (let step = 0; ; step++) {
        expect(step).toBeLessThan(stepsMax)
        const asked = list({ root: market.root, limit: 2 })
        const header = await buyer.sign(asked)
        const dying = makeDyingPayments(ports, { step, when: 'after' })
        replacePayments(service(), dying.payments)
        await ask(service(), asked, header)
        const fresh = new Payments(ports)
        replacePayments(service(), fresh)
        const open = { olderThanMs: Date.now() + 60_000, after: { at: -1n, id: '' }, limit: 100 }
        for (const claim of await listOpenClaims(ports.database, open)) await fresh.reconcile(claim)
        if (dying.steps().length <= step) break
      }
      const taken = funds - (await readChainBalance(service(), buyer.address))
      // Money that waits for a retry is held.
      const { body } = await service().request('GET', `/api/wallets/${buyer.address}`)
      const left = BigInt(body.available) + BigInt(body.pending)
      const sold = ((await readEarnings(service(), market)) * 10n) / 8n
      expect(taken).toBeGreaterThan(0n)
      expect(left + sold).toBe(taken)
      await expectBalanced(service())
    })

    test('audit finds everything equal after all of it', async () => {
      const report = await service().whileStopped((config) => audit(config, () => undefined))
      expect(report).toMatchObject({ equal: true })
    })
  },
  { devnet: true },
)
