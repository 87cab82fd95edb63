import { expect, test } from 'vitest'
import {
  type Asked,
  ask,
  createFundedBuyer,
  type Forged,
  list,
  type PaymentHeader,
  parseEntry,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readChainBalance,
  readEarnings,
  readReceipt,
  setPrices,
  store,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'
import { expectAuditEqual } from './reorganize.ts'

const minute = 60_000
const price = { per_row: '100' }
const other = `0x${'11'.repeat(20)}` as const

withService(
  (service) => {
    /** A market, a buyer with money, a request, and a good payment for it in version 2. */
    async function scene(policy: { price?: object; records?: readonly object[] } = { price }) {
      const market = await openMarket(service(), policy)
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, limit: 3 })
      const header = await buyer.payV2(await quote(service(), asked))
      return { market, buyer, asked, header }
    }

    test('P1: the same payment for the same request is charged once and answered with the same bytes', async () => {
      const { market, buyer, asked, header } = await scene()
      const first = await ask(service(), asked, header)
      expect(first.status, first.text).toBe(200)
      await store(service(), market, [{ id: 'c0', name: 'changed since' }])
      const again = await ask(service(), asked, header)
      expect(again.status).toBe(200)
      expect(again.text).toBe(first.text)
      expect(again.headers.get('x-receipt-id')).toBe(first.headers.get('x-receipt-id'))
      expect(await readChainBalance(service(), buyer.address)).toBe(99_999_700n)
      expect(await readEarnings(service(), market)).toBe(240n)
    })

    test('P2: a payment used a hundred times at once buys one answer, given to all who ask the same', async () => {
      const { market, buyer, asked, header } = await scene()
      const replies = await Promise.all(
        Array.from({ length: 100 }, () => ask(service(), asked, header)),
      )
      expect(replies.map(({ status }) => status)).toEqual(replies.map(() => 200))
      expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
      expect(await readChainBalance(service(), buyer.address)).toBe(99_999_700n)
      expect(await readEarnings(service(), market)).toBe(240n)
      await expectBalanced(service())
    })

    /** Whoever brings a payment while too many others bring it is told to come again. */
    const listAnswered = (replies: readonly TestReply[]) =>
      replies.filter(({ status, body }) => status !== 503 || body.code !== 'PAYMENT_PENDING')

    test('P2: a payment with a hundred different requests at once serves one of them', async () => {
      const { market, asked, header, buyer } = await scene()
      const replies = await Promise.all(
        Array.from({ length: 100 }, (_, at) =>
          ask(
            service(),
            at === 50 ? asked : list({ root: market.root, limit: 3, offset: at }),
            header,
          ),
        ),
      )
      const others = listAnswered(replies.toSpliced(50, 1)).map(({ status }) => status)
      expect(others).toEqual(others.map(() => 402))
      const again = await ask(service(), asked, header)
      expect(again.status, again.text).toBe(200)
      for (const meant of listAnswered(replies.slice(50, 51))) expect(meant.text).toBe(again.text)
      expect(await readChainBalance(service(), buyer.address)).toBe(99_999_700n)
    })

    test('P2: a payment without a quote that fits many requests at once still buys one', async () => {
      const { market, buyer } = await scene()
      const requests = Array.from({ length: 50 }, (_, at) =>
        list({ root: market.root, limit: 3, offset: at }),
      )
      const header = await buyer.payV1(
        await quote(service(), list({ root: market.root, limit: 3 })),
      )
      const replies = await Promise.all(requests.map((one) => ask(service(), one, header)))
      expect(replies.filter(({ status }) => status === 200)).toHaveLength(1)
      for (const { status, body } of listAnswered(replies).filter((one) => one.status !== 200)) {
        expect(status).toBe(409)
        expect(body.code).toBe('PAYMENT_ALREADY_USED')
      }
      expect(await readChainBalance(service(), buyer.address)).toBe(99_999_700n)
      expect(await readEarnings(service(), market)).toBe(240n)
    })

    test.each<[string, (market: Market, second: Market) => Asked]>([
      ['another limit', (market) => list({ root: market.root, limit: 2 })],
      ['another filter', ({ root }) => list({ root, limit: 3, find: { name: 'Graz' } })],
      ['another application', (_, second) => list({ root: second.root, limit: 3 })],
      [
        'another verb and endpoint',
        ({ appId, collection }) => ({
          method: 'GET',
          path: `/api/apps/${appId}/collections/${collection}/records/c0`,
        }),
      ],
      [
        'one more space',
        ({ root }) => ({ ...list({ root }), raw: `{"root":"${root}", "limit":3}` }),
      ],
    ])('P3: a payment re-aimed at %s is refused and not consumed', async (_, aim) => {
      const { market, buyer, asked, header } = await scene()
      const second = await openMarket(service(), { price })
      const refused = await ask(service(), aim(market, second), header)
      expect(refused.status, refused.text).toBe(402)
      expect(refused.body.error).toMatch(/quote/)
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n)
      const meant = await ask(service(), asked, header)
      expect(meant.status, meant.text).toBe(200)
      const reused = await ask(service(), aim(market, second), header)
      expect(reused.status).toBe(409)
      expect(reused.body.code).toBe('PAYMENT_ALREADY_USED')
      expect(await readChainBalance(service(), buyer.address)).toBe(99_999_700n)
    })

    test.each<[string, Forged, RegExp]>([
      ['too low', { authorization: { value: '299' } }, /authorization\.value must be 300/],
      ['too high', { authorization: { value: '301' } }, /authorization\.value must be 300/],
      ['said too low', { accepted: { amount: '299' } }, /accepted\.amount must be 300/],
      ['in another asset', { accepted: { asset: other } }, /accepted\.asset must be 0x/],
      ['to another payee', { authorization: { to: other } }, /authorization\.to must be 0x/],
      ['said to another payee', { accepted: { payTo: other } }, /accepted\.payTo must be 0x/],
      ['on another network', { accepted: { network: 'eip155:8453' } }, /network.*not accepted/],
      ['signed for another chain', { domain: { chainId: 8453 } }, /invalid_signature.*signature/],
      ['signed for another token', { domain: { verifyingContract: other } }, /invalid_signature/],
      ['expired', { authorization: { validBefore: '1700000000' } }, /expired.*validBefore/],
      [
        'valid for ever',
        { authorization: { validBefore: String(2n ** 64n) } },
        /valid_too_long.*validBefore must be at most 7200 seconds from now/,
      ],
      ['not valid yet', { authorization: { validAfter: '4000000000' } }, /not_yet.*validAfter/],
      ['by somebody else', { authorization: { from: other } }, /invalid_signature/],
    ])(
      'P4: a payment %s is refused, naming what is wrong, and nothing moves',
      async (_, forged, says) => {
        const { buyer, asked } = await scene()
        const required = await quote(service(), asked)
        const reply = await ask(service(), asked, await buyer.payV2(required, forged))
        expect(reply.status, reply.text).toBe(402)
        expect(reply.body.error).toMatch(says)
        expect(reply.body.records).toBeUndefined()
        expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n)
      },
    )

    test('P4: a buyer without money gets neither data nor a debt', async () => {
      const { asked } = await scene()
      const poor = await createFundedBuyer(service(), 0n)
      const reply = await poor.buy(service(), asked)
      expect(reply.status).toBe(402)
      expect(reply.body.error).toMatch(/insufficient_balance/)
      expect(await readBalance(service(), poor.address)).toBe(0n)
    })

    test('P5: an expired quote buys nothing, and the payment stays unused', async () => {
      const { buyer, asked } = await scene()
      const required = await quote(service(), asked)
      const validBefore = String(Math.floor(Date.now() / 1000) + 3_600)
      const header = await buyer.payV2(required, { authorization: { validBefore } })
      service().world.advance(5 * minute + 2_000)
      try {
        const reply = await ask(service(), asked, header)
        expect(reply.status).toBe(402)
        expect(reply.body.error).toMatch(/quote.*expired/)
        expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n)
      } finally {
        service().world.advance(-(5 * minute + 2_000))
      }
    })

    test.each([
      { change: 'rises', to: '100000' },
      { change: 'falls', to: '1' },
    ])('P5: a quote holds for its life when the price $change after it', async ({ to }) => {
      for (const version of ['payV2', 'payV1'] as const) {
        const { market, buyer, asked } = await scene()
        const required = await quote(service(), asked)
        const header = await buyer[version](required)
        await setPrices(service(), market, [{ operation: 'read', model: 'per_row', amount: to }])
        const reply = await ask(service(), asked, header)
        expect(reply.status, reply.text).toBe(200)
        expect(await readReceipt(service(), reply)).toMatchObject({ amount: '300', change: '0' })
      }
    })

    test('P5: five minutes after a change of price the old amount buys nothing', async () => {
      const { market, buyer, asked } = await scene()
      const validBefore = String(Math.floor(Date.now() / 1000) + 3_600)
      const forged = { authorization: { validBefore } }
      const header = await buyer.payV1(await quote(service(), asked), forged)
      const dearer = { operation: 'read', model: 'per_row', amount: '200' }
      await setPrices(service(), market, [dearer])
      service().world.advance(5 * minute + 2_000)
      try {
        const reply = await ask(service(), asked, header)
        expect(reply.status).toBe(402)
        expect(reply.body.error).toMatch(/value\) must be 600/)
      } finally {
        service().world.advance(-(5 * minute + 2_000))
      }
    })

    test('P5: an amount that nobody was asked for buys nothing, though earlier prices would add up to it', async () => {
      const { market, buyer } = await scene({ price: { per_access: '1', per_row: '10' } })
      await setPrices(service(), market, [
        { operation: 'read', model: 'per_row', amount: '0' },
        { operation: 'read', model: 'per_access', amount: '500' },
      ])
      // Without a limit nothing could be bought by the row; 1 was never a price of the read.
      const asked = list({ root: market.root })
      const required = await quote(service(), asked)
      const header = await buyer.payV1(required, { authorization: { value: '1' } })
      const reply = await ask(service(), asked, header)
      expect(reply.status).toBe(402)
      expect(reply.body.error).toMatch(/must be 500/)
    })

    test('P5: a quote outlives a restart that forgets the prices behind it, and is never exceeded', async () => {
      const { market, buyer, asked, header } = await scene({ price: { per_row: '2' } })
      await setPrices(service(), market, [{ operation: 'read', model: 'per_row', amount: '900' }])
      await service().restart()
      const reply = await ask(service(), asked, header)
      expect(reply.status, reply.text).toBe(200)
      expect(await readReceipt(service(), reply)).toMatchObject({ amount: '6', deposited: '6' })
      expect(await readBalance(service(), buyer.address)).toBe(0n)
    })

    test('P9: a request that is wrong, unknown or forbidden is never asked to pay', async () => {
      const { market, header } = await scene()
      const wrong = list({ root: market.root, limit: -3 })
      expect((await ask(service(), wrong, header)).status).toBe(400)
      expect((await ask(service(), wrong)).status).toBe(400)
      const nowhere = list({ root: `${market.appId}::nowhere`, limit: 3 })
      expect((await ask(service(), nowhere, header)).status).toBe(404)
      const key = { ...list({ root: market.root, limit: 3 }), headers: { 'x-app-key': 'app_x' } }
      expect((await ask(service(), key, header)).status).toBe(401)
    })

    test('P9: a collection deleted after the quote costs nothing', async () => {
      const { market, buyer, asked, header } = await scene()
      const path = `/api/apps/${market.appId}/collections/${market.collection}`
      await service().request('DELETE', path, { headers: market.headers })
      expect((await ask(service(), asked, header)).status).toBe(404)
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n)
    })

    test('P9: a delivery that fails after the payment is not charged, and its money is the payer’s balance', async () => {
      const market = await openMarket(service(), {
        price: { per_access: '5', per_kb: '10' },
        records: [{ id: 'x', text: 'y'.repeat(3000) }],
      })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, max_kb: 1 })
      const header = await buyer.payV2(await quote(service(), asked))
      const failed = await ask(service(), asked, header)
      expect(failed.status).toBe(413)
      expect(failed.body.details).toMatchObject({ charged: '0' })
      expect(await readBalance(service(), buyer.address)).toBe(15n)
      const state = await service().request(
        'GET',
        `/api/payments/${failed.body.details.payment_id}`,
      )
      expect(state.body.state).toBe('settled')
      // The obstacle is gone: the same payment still buys the answer.
      await store(service(), market, [{ id: 'x', text: 'short' }])
      const later = await ask(service(), asked, header)
      expect(later.status, later.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBeLessThan(15n)
      await expectBalanced(service())
    })

    test('P11: a reader of a settled payment on the chain cannot ask for the answer that it bought', async () => {
      const { asked, header, buyer } = await scene()
      expect((await ask(service(), asked, header)).status).toBe(200)
      const stolen = JSON.parse(Buffer.from(header['payment-signature'] ?? '', 'base64').toString())
      // All parts but the quote are public; a quote of the thief's own is another one.
      const own = await quote(service(), asked)
      const entry = JSON.parse(
        Buffer.from(own.headers.get('payment-required') ?? '', 'base64').toString(),
      ).accepts[0]
      const replay = { ...stolen, accepted: entry }
      const forged = {
        'payment-signature': Buffer.from(JSON.stringify(replay)).toString('base64'),
      }
      const reply = await ask(service(), asked, forged)
      expect(reply.status).toBe(409)
      expect(reply.body.records).toBeUndefined()
      expect(buyer.address).toBeDefined()
    })

    test.each([
      ['nothing', '0'],
      ['less than its gas', '999'],
    ])('P17: a deposit of %s is refused', async (_, value) => {
      const { buyer, asked } = await scene()
      const required = await quote(service(), asked)
      const header = await buyer.payV2(required, { authorization: { value } })
      const { status, body } = await settle(service(), header)
      expect(status).toBe(200)
      expect(body.success).toBe(false)
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n)
    })

    test('P1: a deposit is credited once, however often and however many times at once it is sent', async () => {
      const { buyer, asked } = await scene()
      const required = await quote(service(), asked)
      const forged = { authorization: { value: '5000' }, accepted: { amount: '5000' } }
      const header = await buyer.payV2(required, forged)
      const replies = await Promise.all(Array.from({ length: 20 }, () => settle(service(), header)))
      for (const { body } of replies) expect(body.success).toBe(true)
      expect((await settle(service(), header)).body.payment_id).toBe(replies[0]?.body.payment_id)
      expect(await readBalance(service(), buyer.address)).toBe(5000n)
      const reused = await ask(service(), asked, header)
      expect(reused.status).toBe(409)
      await expectBalanced(service())
    })

    test('P14: a payment with a quote that no JSON of the database may have keeps nobody from auditing', async () => {
      const { buyer, asked } = await scene()
      const required = await quote(service(), asked)
      const entry = parseEntry(required)
      const extra = { ...entry.extra, quoteId: 'q\u0000' }
      const header = await buyer.payV2(required, { accepted: { extra } })
      const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
      const body = {
        ...{ x402Version: 2, paymentPayload: JSON.parse(text) },
        paymentRequirements: entry,
      }
      const settled = await service().request('POST', '/api/payments/settle', { body })
      expect([settled.status, settled.body.code]).toEqual([400, 'PAYMENT_MALFORMED'])
      await expectAuditEqual(service())
    })

    test('a paid reply tells of the data no more than what was delivered', async () => {
      const { asked, header } = await scene()
      const reply = await ask(service(), asked, header)
      expect(reply.body.records).toHaveLength(3)
      expect(reply.body.total).toBe(3)
    })
  },
  { devnet: true },
)

function settle(service: TestService, header: PaymentHeader): Promise<TestReply> {
  const text = Buffer.from(header['payment-signature'] ?? '', 'base64').toString()
  const paymentPayload = JSON.parse(text)
  return service.request('POST', '/api/payments/settle', {
    body: { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted },
  })
}
