import { limits } from '@tollbase/contract/limits'
import { describe, expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { dropReplies } from '../../packages/server/src/services/payments/claims/reply-store.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import {
  type Asked,
  ask,
  askFrom,
  type Buyer,
  createFundedBuyer,
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
  setPrices,
  store,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestService } from '../support/service.ts'
import { makeTestWallet } from '../support/wallet.ts'
import { type Death, makeDyingPayments, replacePayments } from './dying-payments.ts'

async function eraseWien(service: TestService, { appId, headers }: Market): Promise<void> {
  const path = `/api/apps/${appId}/collections/cities/erase`
  const body = { field: 'name', value: 'Wien' }
  const erased = await service.request('POST', path, { headers, body })
  expect(erased.body.versions, erased.text).toBe(1)
}

type Scene = {
  readonly market: Market
  readonly buyer: Buyer
  readonly asked: Asked
  readonly header: PaymentHeader
}

const price = { per_row: '100' }

/** The changes that an owner may make to a thing between a purchase and its repetition. */
const changes: Readonly<Record<string, (service: TestService, market: Market) => Promise<void>>> = {
  'the collection was deleted': async (service, market) => {
    await change(service, market, { method: 'DELETE' })
  },
  'the collection was made private': async (service, market) => {
    await change(service, market, { method: 'PUT', body: { access_policy: 'private' } })
  },
  'only a key may read it now': async (service, market) => {
    await change(service, market, { method: 'PUT', body: { access_policy: 'key' } })
  },
  'it became free': async (service, market) => {
    const confirm_free = [{ collection: market.collection }]
    const body = { access_policy: 'public', confirm_free }
    await change(service, market, { method: 'PUT', body })
  },
  'its price rose': (service, market) =>
    setPrices(service, market, [{ operation: 'read', model: 'per_row', amount: '9000' }]),
  'the fields are offered no more': async (service, market) => {
    const access_policy = { read: 'public', price, offered: { select: ['id'] } }
    await change(service, market, { method: 'PUT', body: { access_policy } })
  },
  'the application was archived': async (service, market) => {
    const reply = await service.request('DELETE', `/api/apps/${market.appId}`, {
      headers: market.headers,
    })
    expect(reply.status).toBe(200)
  },
}

withService(
  (service) => {
    describe.each(Object.entries(changes))(
      'repeats of a payment after this change: %s',
      (_, changed) => {
        test.each([
          ['a list', 'payV2', makeList],
          ['a list without a quote', 'payV1', makeList],
          ['a record', 'payV2', makeRecordRead],
        ] as const)(
          'P1: %s that was paid for is answered again, and nothing else is answered for that payment',
          async (_kind, version, makeAsked) => {
            const scene = await openScene(service(), { version, makeAsked })
            const { market, buyer, asked, header } = scene
            const first = await ask(service(), asked, header)
            expect(first.status, first.text).toBe(200)
            await changed(service(), market)
            const again = await ask(service(), asked, header)
            expect(again.status, again.text).toBe(200)
            expect(again.text).toBe(first.text)
            for (const name of ['x-receipt-id', 'payment-response', 'x-payment-response'])
              expect(again.headers.get(name)).toBe(first.headers.get(name))
            expect(await readChainBalance(service(), buyer.address)).toBeGreaterThan(99_990_000n)
            await expectBalanced(service())

            const other = list({ root: market.root, limit: 2 })
            expect((await ask(service(), other, header)).text).not.toBe(first.text)
          },
        )
      },
    )

    test.each([
      ['its price fell to nothing', [{ operation: 'write', model: 'per_record', amount: '0' }]],
      ['it was never in a price list', []],
      ['its price rose', [{ operation: 'write', model: 'per_record', amount: '5000' }]],
    ] as const)('P1: a store that was paid for does not write again after %s', async (_, rules) => {
      const { market, buyer, asked, header } = await writeScene(service())
      const first = await ask(service(), asked, header)
      expect(first.status, first.text).toBe(200)
      await setPrices(service(), market, rules)
      const replies = await Promise.all([1, 2, 3].map(() => ask(service(), asked, header)))
      for (const reply of replies) expect(reply.text).toBe(first.text)
      expect(await stored(service(), market)).toEqual([1, 2])
      expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 2000n)
      expect(await readEarnings(service(), market)).toBe(1600n)
    })

    test('P7: a store that was written, and whose answer was lost, is not written again though it has become free', async () => {
      const { ports } = service().running.service.payments
      const buy = async (scene: Scene, death?: Death) => {
        const dying = makeDyingPayments(ports, death)
        replacePayments(service(), dying.payments)
        const reply = await ask(service(), scene.asked, scene.header)
        replacePayments(service(), new Payments(ports))
        return { reply, steps: dying.steps() }
      }
      const { steps } = await buy(await writeScene(service()))
      // The statement that moves the claim and keeps the reply.
      const keeping = steps.indexOf('WITH claim')
      expect(keeping).toBeGreaterThan(0)
      const scene = await writeScene(service())
      const { reply } = await buy(scene, { step: keeping, when: 'before' })
      expect(reply.status).toBeGreaterThan(399)
      expect(await stored(service(), scene.market)).toEqual([1, 2])
      const free = { operation: 'write', model: 'per_record', amount: '0' }
      await setPrices(service(), scene.market, [free])
      const again = await ask(service(), scene.asked, scene.header)
      expect(again.status, again.text).toBe(200)
      expect(await stored(service(), scene.market)).toEqual([1, 2])
      await expectBalanced(service())
    })

    test('a paid store whose collection was deleted later is answered again and makes no new collection', async () => {
      const { market, asked, header } = await writeScene(service())
      const first = await ask(service(), asked, header)
      await change(service(), market, { method: 'DELETE' })
      const again = await ask(service(), asked, header)
      expect(again.text).toBe(first.text)
      const path = `/api/apps/${market.appId}/collections/${market.collection}`
      const { status } = await service().request('GET', path, { headers: market.headers })
      expect(status).toBe(404)
    })

    test('answers that were bought of a collection from which a person was erased are kept no more; those of others are', async () => {
      const buyer = await createFundedBuyer(service())
      const buy = async (market: Market) => {
        const asked = list({ root: market.root, limit: 2 })
        const paid = await buyer.payV2(await quote(service(), asked))
        const first = await ask(service(), asked, paid)
        expect(first.status, first.text).toBe(200)
        return () => ask(service(), asked, paid)
      }
      const [market, other] = [
        await openMarket(service(), { price: { per_row: '1' } }),
        await openMarket(service(), { price: { per_row: '1' } }),
      ]
      const [again, others] = [await buy(market), await buy(other)]
      expect((await again()).text).toContain('Wien')
      await eraseWien(service(), market)
      expect(await again()).toMatchObject({ status: 410, body: { code: 'PAYMENT_REPLY_GONE' } })
      expect((await others()).text).toContain('Wien')
    })

    const openPriced = () => openMarket(service(), { price: { per_row: '1' } })

    async function buyDying(market: Market, death?: Death) {
      const { ports } = service().running.service.payments
      const asked = list({ root: market.root, limit: 2 })
      const paid = await (await createFundedBuyer(service())).payV2(await quote(service(), asked))
      const dying = makeDyingPayments(ports, death)
      replacePayments(service(), dying.payments)
      const first = await ask(service(), asked, paid)
      replacePayments(service(), new Payments(ports))
      return { first, steps: dying.steps(), again: () => ask(service(), asked, paid) }
    }

    test('nor is one that was charged for after the erasure: its buyer gets it, and then it goes', async () => {
      const { ports } = service().running.service.payments
      const { steps } = await buyDying(await openPriced())
      // The answer is kept, and not charged for yet.
      const death = { step: steps.indexOf('append'), when: 'before' } as const
      const [market, other] = [await openPriced(), await openPriced()]
      const [erased, others] = [await buyDying(market, death), await buyDying(other, death)]
      expect(erased.first.status).toBeGreaterThan(399)
      await eraseWien(service(), market)
      for (const { again } of [erased, others]) expect((await again()).text).toContain('Wien')
      const { chain } = ports.tenants.system
      await chain.whenApplied(chain.head().height)
      const now = { nowMs: service().world.now(), bytesMax: limits.keptRepliesBytesMax }
      await dropReplies(ports.database, now)
      const gone = { status: 410, body: { code: 'PAYMENT_REPLY_GONE' } }
      expect(await erased.again()).toMatchObject(gone)
      expect((await others.again()).text).toContain('Wien')
    })

    test('an answer that is to go once it is charged for is no difference to the audit', async () => {
      const { steps } = await buyDying(await openPriced())
      const market = await openPriced()
      const death = { step: steps.indexOf('append'), when: 'before' } as const
      const { first, again } = await buyDying(market, death)
      expect(first.status).toBeGreaterThan(399)
      await eraseWien(service(), market)
      const report = await service().whileStopped((config) => audit(config, () => undefined))
      expect(report.difference).toBeUndefined()
      expect((await again()).text).toContain('Wien')
    })

    test.each(['5', '0'])(
      'nor are answers that another application sold, to which the erased records were joined for %s',
      async (perAccess) => {
        const joined = await openMarket(service(), {
          policy: { derive: { per_access: perAccess } },
        })
        const market = await openMarket(service(), {
          price: { per_row: '1' },
          records: [{ id: 'r1', city: 'c0' }],
        })
        const city = { model: joined.root, resolve: { find: { id: '$data.city' } } }
        const asked = list({ root: market.root, find: { city }, limit: 1 })
        const paid = await (await createFundedBuyer(service())).payV2(await quote(service(), asked))
        const first = await ask(service(), asked, paid)
        expect(first.text).toContain('Wien')
        await eraseWien(service(), joined)
        expect(await ask(service(), asked, paid)).toMatchObject({ status: 410 })
      },
    )

    test('nor are answers of a view of the collection that is deleted by then', async () => {
      const market = await openMarket(service())
      const path = `/api/apps/${market.appId}/views`
      const query = { find: {} }
      const view = { name: 'towns', source_collections: ['cities'], query }
      const access_policy = { read: 'public', price: { per_row: '1' } }
      const { headers } = market
      const body = { ...view, access_policy }
      const made = await service().request('POST', path, { headers, body })
      expect(made.status, made.text).toBe(201)
      const asked = list({ root: `${market.appId}::towns`, limit: 9 })
      const paid = await (await createFundedBuyer(service())).payV2(await quote(service(), asked))
      const first = await ask(service(), asked, paid)
      expect(first.text).toContain('Wien')
      await service().request('DELETE', `${path}/towns`, { headers })
      await eraseWien(service(), market)
      expect(await ask(service(), asked, paid)).toMatchObject({ status: 410 })
    })

    test('a revoked key gets no kept answer; another good key with the payment does', async () => {
      const { market, asked, header } = await writeScene(service())
      const first = await ask(service(), asked, header)
      const made = await service().request('POST', `/api/apps/${market.appId}/keys`, {
        headers: market.headers,
        body: { permissions: ['Write'] },
      })
      const by = (key: string) =>
        ask(service(), { ...asked, headers: { 'x-app-key': key } }, header)
      expect((await by(made.body.key)).text).toBe(first.text)
      await service().request(
        'POST',
        `/api/apps/${market.appId}/keys/${made.body.key_hash}/revoke`,
        { headers: market.headers },
      )
      const refused = await by(made.body.key)
      expect(refused.status).toBe(401)
      expect(refused.body.ticket_id).toBeUndefined()
      expect((await ask(service(), { ...asked, headers: {} }, header)).status).toBe(401)
    })

    test('P11: a stranger who saw the payment on the chain gets what is there for everybody, and no kept answer', async () => {
      const { market, asked, header } = await openScene(service(), {
        version: 'payV2',
        makeAsked: makeList,
      })
      const own = parseEntry(await quote(service(), asked))
      const first = await ask(service(), asked, header)
      expect(first.status).toBe(200)
      const seen = decoded(header)
      const { quoteId: _, ...extra } = seen.accepted.extra
      const thefts = [
        { ...seen, accepted: own },
        { ...seen, accepted: { ...seen.accepted, extra } },
        { ...seen, accepted: { ...seen.accepted, extra: { ...extra, quoteId: '' } } },
      ].map((theft) => ({ 'payment-signature': encoded(theft) }))
      const version1 = {
        x402Version: 1,
        scheme: 'exact',
        network: 'base-sepolia',
        payload: seen.payload,
      }
      const all = [...thefts, { 'x-payment': encoded(version1) }]
      for (const theft of all) {
        const reply = await ask(service(), asked, theft)
        expect(reply.status, reply.text).toBe(409)
        expect(reply.body.records).toBeUndefined()
      }
      await change(service(), market, { method: 'DELETE' })
      for (const theft of all) {
        const reply = await ask(service(), asked, theft)
        expect(reply.status).toBe(404)
        expect(reply.text).not.toContain('Wien')
      }
    })

    // On other systems the loopback has one address only.
    test.runIf(process.platform === 'linux')(
      'P11: a payment without a quote is answered again to its origin and to its payer; a stranger who saw it gets nothing',
      async () => {
        const { buyer, asked, header } = await openScene(service(), {
          version: 'payV1',
          makeAsked: makeList,
        })
        const elsewhere = (headers: PaymentHeader) =>
          askFrom('127.0.0.2', service(), { ...asked, headers: { ...header, ...headers } })
        const [first, early] = await Promise.all([
          ask(service(), asked, header),
          new Promise((resolve) => setTimeout(resolve, 5)).then(() => elsewhere({})),
        ])
        // The first to come is the buyer.
        expect([first.status, early.status].sort()).toEqual([200, 409])
        const scene = await openScene(service(), { version: 'payV1', makeAsked: makeList })
        const bought = await ask(service(), scene.asked, scene.header)
        expect(bought.status, bought.text).toBe(200)
        const thief = await askFrom('127.0.0.2', service(), {
          ...scene.asked,
          headers: scene.header,
        })
        expect(thief.status, thief.text).toBe(409)
        expect(thief.text).not.toContain('Wien')
        const signature = await makeTestWallet(scene.buyer.account).sign({
          origin: service().url,
          method: scene.asked.method,
          path: scene.asked.path,
          body: scene.asked.raw ?? '',
          timestamp: Math.floor(service().world.now() / 1000),
        })
        const payer = await askFrom('127.0.0.2', service(), {
          ...scene.asked,
          headers: { ...scene.header, ...signature },
        })
        expect(payer.status, payer.text).toBe(200)
        expect(payer.text).toBe(bought.text)
        expect((await ask(service(), scene.asked, scene.header)).text).toBe(bought.text)
        expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 300n)
      },
    )

    /** Makes a payment without a quote whose money has arrived, and whose answer could not be given. */
    async function unansweredScene() {
      const market = await openMarket(service(), {
        price: { per_access: '5', per_kb: '10' },
        records: [{ id: 'x', text: 'y'.repeat(3000) }],
      })
      const buyer = await createFundedBuyer(service())
      const asked = list({ root: market.root, max_kb: 1 })
      const header = await buyer.payV1(await quote(service(), asked))
      const mend = () => store(service(), market, [{ id: 'x', text: 'short' }])
      return { market, buyer, asked, header, mend }
    }
    const signedBy = (buyer: Buyer, { method, path, raw = '' }: Asked) =>
      makeTestWallet(buyer.account).sign({
        origin: service().url,
        method,
        path,
        body: raw,
        timestamp: Math.floor(service().world.now() / 1000),
      })
    const elsewhere = (asked: Asked, headers: PaymentHeader) =>
      askFrom('127.0.0.2', service(), { ...asked, headers: { ...asked.headers, ...headers } })

    test.runIf(process.platform === 'linux')(
      'P11: the payer who signs his request goes on from any address where a payment without a quote stands, and nobody else does',
      async () => {
        const { buyer, asked, header, mend } = await unansweredScene()
        expect((await ask(service(), asked, header)).status).toBe(413)
        await mend()
        const thief = await createFundedBuyer(service())
        for (const stolen of [header, { ...header, ...(await signedBy(thief, asked)) }]) {
          const reply = await elsewhere(asked, stolen)
          expect(reply.status, reply.text).toBe(409)
          expect(reply.text).not.toContain('short')
        }
        const signed = await elsewhere(asked, { ...header, ...(await signedBy(buyer, asked)) })
        expect(signed.status, signed.text).toBe(200)
        expect((await ask(service(), asked, header)).text).toBe(signed.text)
        // For another request it is worth no more than before, whoever signs.
        const other = list({ root: asked.raw ? JSON.parse(asked.raw).root : '', max_kb: 2 })
        const reused = await elsewhere(other, { ...header, ...(await signedBy(buyer, other)) })
        expect(reused.status, reused.text).toBe(409)
        await expectBalanced(service())
      },
    )

    test.runIf(process.platform === 'linux')(
      'P11: the key that paid repeats a payment without a quote from any address, another key does not',
      async () => {
        const { buyer, asked, header, mend } = await unansweredScene()
        const [mine, thiefs] = [await service().createApp(), await service().createApp()]
        const withKey = ({ headers }: { headers: PaymentHeader }) => ({ ...header, ...headers })
        expect((await ask(service(), asked, withKey(mine))).status).toBe(413)
        await mend()
        for (const stolen of [header, withKey(thiefs)]) {
          const reply = await elsewhere(asked, stolen)
          expect(reply.status, reply.text).toBe(409)
        }
        const again = await elsewhere(asked, withKey(mine))
        expect(again.status, again.text).toBe(200)
        expect((await elsewhere(asked, withKey(mine))).text).toBe(again.text)
        expect((await elsewhere(asked, withKey(thiefs))).status).toBe(409)
        expect((await ask(service(), asked, header)).text).toBe(again.text)
        expect(await readChainBalance(service(), buyer.address)).toBe(100_000_000n - 15n)
      },
    )

    test('a payment header that cannot be read is judged after the caller and the object of the request', async () => {
      const broken = { 'payment-signature': '???' }
      const nowhere = list({ root: `${(await service().createApp()).appId}::nowhere`, limit: 1 })
      expect((await ask(service(), nowhere, broken)).status).toBe(404)
      const { asked } = await openScene(service(), { version: 'payV2', makeAsked: makeList })
      const reply = await ask(service(), asked, broken)
      expect(reply.body).toMatchObject({ code: 'PAYMENT_MALFORMED' })
      const wrong = { ...asked, headers: { 'x-app-key': 'app_wrong' } }
      expect((await ask(service(), wrong, broken)).status).toBe(401)
    })

    test('P1: a deposit that is repeated at once, later and after a restart is answered the same and credited once', async () => {
      const { buyer, asked } = await openScene(service(), { version: 'payV2', makeAsked: makeList })
      const forged = { authorization: { value: '5000' }, accepted: { amount: '5000' } }
      const paymentPayload = decoded(await buyer.payV2(await quote(service(), asked), forged))
      const send = () =>
        service().request('POST', '/api/payments/settle', {
          body: { x402Version: 2, paymentPayload, paymentRequirements: paymentPayload.accepted },
        })
      const replies = await Promise.all([1, 2, 3, 4, 5].map(send))
      await service().restart()
      replies.push(await send())
      for (const { body } of replies) {
        expect(body).toMatchObject({ success: true, payer: buyer.address })
        expect(body).toEqual(replies[0]?.body)
      }
      expect(await readBalance(service(), buyer.address)).toBe(5000n)
      await expectBalanced(service())
    })
  },
  { devnet: true },
)

async function openScene(
  service: TestService,
  { version, makeAsked }: { version: 'payV1' | 'payV2'; makeAsked: (market: Market) => Asked },
): Promise<Scene> {
  const market = await openMarket(service, { price })
  const buyer = await createFundedBuyer(service)
  const asked = makeAsked(market)
  return { market, buyer, asked, header: await buyer[version](await quote(service, asked)) }
}

/** The store writes two records without keys: written twice, they would be four. */
async function writeScene(service: TestService): Promise<Scene> {
  const market = await openMarket(service, { records: [] })
  await setPrices(service, market, [{ operation: 'write', model: 'per_record', amount: '1000' }])
  const raw = JSON.stringify({ root: market.root, data: [{ n: 1 }, { n: 2 }] })
  const asked = { method: 'POST', path: '/store?wait=true', raw, headers: market.headers }
  const buyer = await createFundedBuyer(service)
  return { market, buyer, asked, header: await buyer.payV2(await quote(service, asked)) }
}

function makeList({ root }: Market): Asked {
  return list({ root, limit: 3 })
}

function makeRecordRead({ appId, collection }: Market): Asked {
  return { method: 'GET', path: `/api/apps/${appId}/collections/${collection}/records/c0` }
}

async function stored(service: TestService, market: Market): Promise<Json[]> {
  const { body } = await service.request('POST', '/list', {
    headers: market.headers,
    body: { root: market.root },
  })
  return body.records.map(({ n }: Json) => n)
}

async function change(
  service: TestService,
  { appId, collection, headers }: Market,
  { method, body }: { method: string; body?: object },
): Promise<void> {
  const path = `/api/apps/${appId}/collections/${collection}`
  const reply = await service.request(method, path, { headers, ...(body && { body }) })
  expect(reply.status, reply.text).toBe(200)
}

function decoded(header: PaymentHeader): Json {
  return JSON.parse(Buffer.from(header['payment-signature'] ?? '', 'base64').toString())
}

function encoded(payment: object): string {
  return Buffer.from(JSON.stringify(payment)).toString('base64')
}
