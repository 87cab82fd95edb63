import { expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { type Asked, ask, type PaymentHeader, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readChainBalance,
  readEarnings,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json } from '../support/service.ts'
import { makeChannelBuyer, readChannels } from './channel-buyer.ts'
import { type Death, makeDyingPayments, replacePayments } from './dying-payments.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

const stepsMax = 60
const funds = 20_000_000n
const schemes = ['a channel', 'upto'] as const
type Scheme = (typeof schemes)[number]

withService(
  (service) => {
    const open = async (): Promise<Market> => {
      const market = await openMarket(service(), { records: [] })
      const rule = { operation: 'write', model: 'per_record', amount: '1000' }
      await setPrices(service(), market, [rule])
      return market
    }
    const makeBuyer = (scheme: Scheme) =>
      scheme === 'upto' ? makeUptoBuyer(service()) : makeChannelBuyer(service())
    /** Reads the money that was taken from the buyer, whatever it was for. */
    const readTaken = async (scheme: Scheme, address: string): Promise<bigint> => {
      if (scheme === 'upto') return funds - (await readChainBalance(service(), address))
      const [channel] = await readChannels(service(), address)
      return BigInt(channel?.charged ?? 0)
    }
    // The records have no keys, so that a second write would be seen as further records.
    const makeBody = ({ root }: Market, ...numbers: number[]) => ({
      root,
      data: numbers.map((n) => ({ n })),
    })
    const makeStore = (market: Market, ...numbers: number[]): Asked => ({
      ...{ method: 'POST', path: '/store', headers: market.headers },
      raw: JSON.stringify(makeBody(market, ...numbers)),
    })
    const readStored = async (market: Market): Promise<number[]> => {
      const { chain } = await service().running.service.tenants.load(market.appId)
      await chain.whenApplied(chain.head().height)
      const { headers, root } = market
      const { body } = await service().request('POST', '/list', {
        ...{ headers, body: { root, limit: 500 } },
      })
      return body.records.map(({ n }: Json) => n)
    }
    /** Asks a process that dies at this step; then there is one that lives. */
    const askDying = async (asked: Asked, header: PaymentHeader, death: Death) => {
      const { ports } = service().running.service.payments
      const dying = makeDyingPayments(ports, death)
      replacePayments(service(), dying.payments)
      await ask(service(), asked, header)
      const fresh = new Payments(ports)
      replacePayments(service(), fresh)
      return { fresh, steps: dying.steps() }
    }

    test.each(schemes)('a stock client pays for records that it stores by %s', async (scheme) => {
      const market = await open()
      const buyer = await makeBuyer(scheme)
      for (const numbers of [[1, 2], [3]]) {
        const reply = await buyer.post('/store', makeBody(market, ...numbers), market.headers)
        expect(reply.status, reply.text).toBe(202)
      }
      expect(await readStored(market)).toEqual([1, 2, 3])
      expect(await readTaken(scheme, buyer.address)).toBe(3000n)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(2400n)
      await expectBalanced(service())
    })

    test.each(schemes)(
      'a write that fails is not charged to %s, and the next one is paid',
      async (scheme) => {
        const market = await open()
        const buyer = await makeBuyer(scheme)
        const missing = { operation: 'update', collection: 'cities', data: { id: 'none', n: 2 } }
        const path = `/api/apps/${market.appId}/batch`
        const failed = await buyer.post(path, { operations: [missing] }, market.headers)
        expect(failed.status, failed.text).toBe(404)
        const stored = await buyer.post('/store', makeBody(market, 7), market.headers)
        expect(stored.status, stored.text).toBe(202)
        expect(await readStored(market)).toEqual([7])
        expect(await readEarnings(service(), market)).toBe(800n)
        // Money that has moved for nothing is the payer's balance.
        const left = await readBalance(service(), buyer.address)
        expect(left).toBe(scheme === 'upto' ? 1000n : 0n)
        expect((await readTaken(scheme, buyer.address)) - left).toBe(1000n)
        await expectBalanced(service())
      },
    )

    test('a voucher that was sent twice at once with one store writes once', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.post('/store', makeBody(market, 0), market.headers)
      const asked = makeStore(market, 1, 2)
      const header = await buyer.sign(asked)
      const replies = await Promise.all([1, 2, 3].map(() => ask(service(), asked, header)))
      expect(replies.map(({ status }) => status)).toEqual([202, 202, 202])
      expect(new Set(replies.map(({ text }) => text)).size).toBe(1)
      expect(await readStored(market)).toEqual([0, 1, 2])
      expect(await readTaken('a channel', buyer.address)).toBe(3000n)
    })

    test('a write whose answer was lost is neither made nor charged again when its request comes to two processes at once, after and beside others', async () => {
      const market = await open()
      const buyer = await makeChannelBuyer(service())
      await buyer.post('/store', makeBody(market, 0), market.headers)
      const asked = makeStore(market, 1)
      const header = await buyer.sign(asked)
      const lost = await ask(service(), asked, header)
      expect(lost.status, lost.text).toBe(202)
      await buyer.post('/store', makeBody(market, 2), market.headers)
      const { payments } = service().running.service
      const other = new Payments(payments.ports)
      const next = buyer.post('/store', makeBody(market, 3), market.headers)
      const replies = await Promise.all(
        [payments, other, payments, other].map((one) => {
          replacePayments(service(), one)
          return ask(service(), asked, header)
        }),
      )
      expect((await next).status).toBe(202)
      expect(replies.map(({ text }) => text)).toEqual(replies.map(() => lost.text))
      expect(await readStored(market)).toEqual([0, 1, 2, 3])
      expect(await readTaken('a channel', buyer.address)).toBe(4000n)
      // A client that begins anew, and stores the same as its first one, writes once more.
      const forgetful = await makeChannelBuyer(service(), { key: buyer.key })
      const stored = await forgetful.post('/store', makeBody(market, 0), market.headers)
      expect(stored.status, stored.text).toBe(202)
      expect(await readStored(market)).toEqual([0, 1, 2, 3, 0])
      expect(await readTaken('a channel', buyer.address)).toBe(5000n)
      replacePayments(service(), payments)
    })

    test.each(
      schemes.flatMap((scheme) => [[scheme, 'before'] as const, [scheme, 'after'] as const]),
    )(
      'a write paid by %s survives a death %s each of its steps: the retry is answered, and it is made and charged once',
      async (scheme, when) => {
        const market = await open()
        const buyer = await makeBuyer(scheme)
        await buyer.post('/store', makeBody(market, 0), market.headers)
        let count = 1
        for (let step = 0; ; step++) {
          expect(step).toBeLessThan(stepsMax)
          const asked = makeStore(market, count, count + 1)
          const header = await buyer.sign(asked)
          const { steps } = await askDying(asked, header, { step, when })
          const again = await ask(service(), asked, header)
          const at = `${step}: ${steps.join(', ')}`
          expect(again.status, `${at} ${again.text}`).toBe(202)
          count += 2
          expect(await readTaken(scheme, buyer.address), at).toBe(BigInt(count) * 1000n)
          // The client learns what the lost answer cost.
          const next = await buyer.post('/store', makeBody(market, count), market.headers)
          expect(next.status, next.text).toBe(202)
          count += 1
          if (steps.length <= step) break
        }
        expect(await readStored(market)).toEqual(Array.from({ length: count }, (_, n) => n))
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        expect(await readEarnings(service(), market)).toBe(BigInt(count) * 800n)
        await expectBalanced(service())
      },
    )

    test.each(schemes)(
      'where nobody comes back after a death at any step, what was written is charged to %s, and nothing else',
      async (scheme) => {
        const market = await open()
        for (let step = 0; ; step++) {
          expect(step).toBeLessThan(stepsMax)
          const buyer = await makeBuyer(scheme)
          const asked = makeStore(market, step)
          const header = await buyer.sign(asked)
          const { fresh, steps } = await askDying(asked, header, { step, when: 'after' })
          const { database } = service()
          const page = { olderThanMs: Date.now() + 60_000, after: { at: -1n, id: '' }, limit: 100 }
          for (const claim of await listOpenClaims(database, page)) await fresh.reconcile(claim)
          const isStored = (await readStored(market)).includes(step)
          const at = `${step}: ${steps.join(', ')}`
          const { body } = await service().request('GET', `/api/wallets/${buyer.address}`)
          const left = BigInt(body.available) + BigInt(body.pending)
          const charged = (await readTaken(scheme, buyer.address)) - left
          expect(charged, at).toBe(isStored ? 1000n : 0n)
          if (steps.length <= step) break
        }
        const stored = await readStored(market)
        expect(await readEarnings(service(), market)).toBe(BigInt(stored.length) * 800n)
        await expectBalanced(service())
      },
    )

    test('audit finds everything equal after all of it', async () => {
      const report = await service().whileStopped((config) => audit(config, () => undefined))
      expect(report).toMatchObject({ equal: true })
    })
  },
  { devnet: true },
)
