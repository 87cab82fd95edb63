import type { LocalAccount } from 'viem'
import { describe, expect, test } from 'vitest'
import { type Asked, ask, createFundedBuyer, list, quote, readBalance } from '../support/buyer.ts'
import { expectBalanced, openMarket, readEarnings, readReceipt } from '../support/market.ts'
import { createFundedPayer, findNativeEntry, makeProof, type Payer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestApp } from '../support/service.ts'
import { makeTestWallet } from '../support/wallet.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

/** The clients' spellings of one body: PHP without blanks and with slashes escaped, Python with blanks. */
const spellings: readonly (readonly [string, (body: object) => string])[] = [
  ['PHP', (body) => JSON.stringify(body).replaceAll('/', '\\/')],
  ['Python', (body) => JSON.stringify(body, undefined, 1).replace(/\n */g, ' ')],
]

/** The price of two records. */
const price = 2000n
const records = [
  { id: 'a', path: 'x/y', n: 1 },
  { id: 'b', path: '', n: 1.5 },
]

withService(
  (service) => {
    /** An application that belongs to a payer, where a stored record costs something. */
    const openShop = async (owner: Pick<Payer, 'address'>, amount = '1000') => {
      const id = `owned-${owner.address.slice(2, 14)}`
      const { status, body } = await service().request('POST', '/api/apps', {
        headers: service().operator,
        body: { name: id, app_id: id, owner_address: owner.address },
      })
      expect(status).toBe(201)
      const headers = { 'x-app-key': body.app_key }
      const app: TestApp = { appId: id, key: body.app_key, keyHash: body.key_hash, headers }
      const made = await service().request('POST', `/api/apps/${id}/collections`, {
        headers,
        body: { name: 'notes' },
      })
      expect(made.status, made.text).toBe(201)
      await setReadPrice({ app, headers }, amount)
      return { app, headers, root: `${id}::notes` }
    }
    const setReadPrice = async (
      { app, headers }: { app: TestApp; headers: Record<string, string> },
      amount: string,
    ) => {
      const rule = { target: { collection: 'notes' }, operation: 'write', model: 'per_record' }
      const priced = await service().request('PUT', `/api/apps/${app.appId}/pricing`, {
        headers,
        body: { rules: [{ ...rule, amount }] },
      })
      expect(priced.status, priced.text).toBe(200)
    }
    const scene = async (amount?: string) => {
      const owner = await createFundedPayer(service())
      return { owner, ...(await openShop(owner, amount)) }
    }
    const makeStore = (
      { headers, root }: { headers: Asked['headers'] & object; root: string },
      proofMembers: object = {},
      write: (body: object) => string = JSON.stringify,
    ): Asked => {
      const raw = write({ root, data: records, ...proofMembers })
      return { method: 'POST', path: '/store?wait=true', raw, headers }
    }
    const stored = async ({ headers, root }: { headers: Record<string, string>; root: string }) => {
      const { body } = await service().request('POST', '/list', { headers, body: { root } })
      return body.records ?? []
    }
    const treasury = () => service().running.devnet?.network.payTo ?? ''
    const refused = async (asked: Asked, why: RegExp) => {
      const reply = await ask(service(), asked)
      expect(reply.status, reply.text).toBe(402)
      expect(reply.body.error).toMatch(why)
    }

    describe.each(spellings)('proofs in a body as %s spells it', (_, write) => {
      test('a proof with the quote of the first try, which had none of its members, buys that store', async () => {
        const shop = await scene()
        const { payTo, extra } = findNativeEntry(await quote(service(), makeStore(shop, {}, write)))
        const hash = await shop.owner.transfer({ to: payTo, value: price })
        const members = {
          payment_tx_hash: hash.slice(2).toUpperCase(),
          amount_utia: Number(price),
          user_address: shop.owner.account.address,
          broker_address: payTo,
          payment_network: 'mocha-4',
          quote_id: extra.quoteId,
        }
        const asked = makeStore(shop, members, write)
        const sold = await ask(service(), asked)
        expect(sold.status, sold.text).toBe(200)
        expect((await ask(service(), asked)).text).toBe(sold.text)
        expect(await stored(shop)).toEqual(records)
        expect(await readReceipt(service(), sold)).toMatchObject({ amount: '2000', change: '0' })
        expect(await readEarnings(service(), shop.app)).toBe(1600n)
        await expectBalanced(service())
      })

      test('the owner’s transfer to the treasury buys a store without a quote, once', async () => {
        const shop = await scene()
        const hash = await shop.owner.transfer({ to: treasury(), value: price + 5n })
        const members = { payment_tx_hash: hash, amount_utia: 2005, user_address: '' }
        const asked = makeStore(shop, members, write)
        const replies = await Promise.all([1, 2, 3].map(() => ask(service(), asked)))
        for (const reply of replies) {
          expect(reply.status, reply.text).toBe(200)
          expect(reply.text).toBe(replies[0]?.text)
        }
        const other = { ...asked, path: '/store' }
        expect((await ask(service(), other)).body.code).toBe('PAYMENT_ALREADY_USED')
        expect(await stored(shop)).toEqual(records)
        expect(await readBalance(service(), shop.owner.address)).toBe(5n)
        expect(await readEarnings(service(), shop.app)).toBe(1600n)
        await expectBalanced(service())
      })
    })

    test('the price of a store is that of the body without the proof', async () => {
      const shop = await scene()
      const rule = { target: { collection: 'notes' }, operation: 'write', model: 'per_kb' }
      await service().request('PUT', `/api/apps/${shop.app.appId}/pricing`, {
        headers: shop.headers,
        body: { rules: [{ ...rule, amount: '700' }] },
      })
      const first = findNativeEntry(await quote(service(), makeStore(shop)))
      const payment_mode = 'pay_on_write'.repeat(200)
      const again = findNativeEntry(await quote(service(), makeStore(shop, { payment_mode })))
      expect(again.maxAmountRequired).toBe(first.maxAmountRequired)
    })

    test("P11: nobody else's transfer to the treasury counts, whoever presents it", async () => {
      const [shop, other] = [await scene(), await scene()]
      const stranger = await createFundedPayer(service())
      const foreign = await stranger.transfer({ to: treasury(), value: price })
      await refused(makeStore(shop, { payment_tx_hash: foreign }), /another sender/)
      const lie = { payment_tx_hash: foreign, user_address: stranger.address }
      await refused(makeStore(shop, lie), /must come from the owner of the application, 0x/)
      const own = await shop.owner.transfer({ to: treasury(), value: price })
      await refused(makeStore(other, { payment_tx_hash: own }), /another sender/)
      expect((await ask(service(), makeStore(shop, { payment_tx_hash: own }))).status).toBe(200)
      await refused(makeStore(other, { payment_tx_hash: own }), /another sender/)
      expect(await stored(other)).toEqual([])
      expect(await readBalance(service(), stranger.address)).toBe(0n)
    })

    test('P11: what a permit of the scheme upto paid counts once: its transaction is no transfer of the owner', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = await makeUptoBuyer(service())
      const shop = await openShop(buyer)
      const bought = await buyer.list({ root: market.root, limit: 3 })
      expect(bought.notice).toMatchObject({ success: true, amount: '3000' })
      const { transaction } = bought.notice
      await refused(makeStore(shop, { payment_tx_hash: transaction }), /a call of the token itself/)
      expect(await stored(shop)).toEqual([])
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      await expectBalanced(service())
    })

    test('P11: nobody spends a stranger’s transfer by naming him the owner of an application', async () => {
      const shop = await scene()
      const victim = await createFundedPayer(service())
      const hash = await victim.transfer({ to: treasury(), value: price })
      const path = `/api/apps/${shop.app.appId}`
      const body = JSON.stringify({ owner_address: victim.address })
      const signed = async (by: LocalAccount) => {
        const timestamp = Math.floor(service().world.now() / 1000)
        return makeTestWallet(by).sign({
          origin: service().url,
          method: 'PATCH',
          path,
          body,
          timestamp,
        })
      }
      const patch = async (headers: Record<string, string>) =>
        service().request('PATCH', path, { headers, raw: body })
      const present = await signed(shop.owner.account)
      for (const headers of [shop.headers, present, { ...shop.headers, ...present }]) {
        const answer = await patch(headers)
        expect(answer).toMatchObject({
          status: 400,
          body: { details: { field: '/owner_address' } },
        })
      }
      const forged = { ...present, 'x-wallet-address': victim.address }
      expect((await patch({ ...shop.headers, ...forged })).status).toBe(401)
      await refused(makeStore(shop, { payment_tx_hash: hash }), /another sender/)
      const agreed = await patch({ ...shop.headers, ...(await signed(victim.account)) })
      expect(agreed.body, agreed.text).toMatchObject({ owner_address: victim.address })
    })

    test('P11: an authorization of the owner that paid for something counts under its nonce alone', async () => {
      const shop = await scene()
      const buyer = await createFundedBuyer(service())
      const patched = await service().request('PATCH', `/api/apps/${shop.app.appId}`, {
        headers: service().operator,
        body: { owner_address: buyer.address },
      })
      expect(patched.status, patched.text).toBe(200)
      const bought = await buyer.buy(service(), makeStore(shop))
      expect(bought.status, bought.text).toBe(200)
      const { transaction } = decoded(bought.headers.get('payment-response'))
      await refused(makeStore(shop, { payment_tx_hash: transaction }), /made by an authorization/)
      expect(await readEarnings(service(), shop.app)).toBe(1600n)
    })

    test('a transfer of too little is on the balance of the owner', async () => {
      const shop = await scene()
      const hash = await shop.owner.transfer({ to: treasury(), value: price - 1n })
      const asked = makeStore(shop, { payment_tx_hash: hash })
      await refused(asked, /1999, is less than the price, 2000; its 1999 .* on the balance of 0x/)
      await refused(asked, /is less than the price/)
      expect(await readBalance(service(), shop.owner.address)).toBe(price - 1n)
      expect(await stored(shop)).toEqual([])
    })

    test('P5: a transfer counts by the current price, or by one that was asked a moment ago', async () => {
      const shop = await scene()
      const setPrice = (amount: string) => setReadPrice(shop, amount)
      await quote(service(), makeStore(shop))
      const before = await shop.owner.transfer({ to: treasury(), value: price })
      await setPrice('5000')
      const old = makeStore(shop, { payment_tx_hash: before })
      expect((await ask(service(), old)).status).toBe(200)
      await setPrice('900')
      const cheap = await shop.owner.transfer({ to: treasury(), value: price - 1n })
      const sold = await ask(service(), makeStore(shop, { payment_tx_hash: cheap }))
      expect(await readReceipt(service(), sold)).toMatchObject({ amount: '1800', change: '199' })
      expect(await readBalance(service(), shop.owner.address)).toBe(199n)
      expect(await readEarnings(service(), shop.app)).toBe(1600n + 1440n)
    })

    test('P5: a transfer pays the highest of the asked prices that it covers', async () => {
      const shop = await scene('1500')
      await quote(service(), makeStore(shop))
      await setReadPrice(shop, '500')
      await quote(service(), makeStore(shop))
      await setReadPrice(shop, '2500')
      const hash = await shop.owner.transfer({ to: treasury(), value: 3000n })
      const sold = await ask(service(), makeStore(shop, { payment_tx_hash: hash }))
      expect(await readReceipt(service(), sold)).toMatchObject({ amount: '3000', change: '0' })
    })

    test('P5: a price that anybody was asked counts for this very store, for five minutes, and for no other store', async () => {
      const shop = await scene('500')
      const other = { ...makeStore(shop), path: '/store' }
      const another = await service().request('POST', `/api/apps/${shop.app.appId}/keys`, {
        headers: shop.headers,
        body: { permissions: ['Write'] },
      })
      const told = await quote(service(), {
        ...makeStore(shop),
        headers: { 'x-app-key': another.body.key },
      })
      expect(findNativeEntry(told).maxAmountRequired).toBe('1000')
      await setReadPrice(shop, '2500')
      const transfer = () => shop.owner.transfer({ to: treasury(), value: 1000n })
      const [elsewhere, late, early] = [await transfer(), await transfer(), await transfer()]
      const low = /1000, is less than the price, 5000/
      await refused({ ...makeStore(shop, { payment_tx_hash: elsewhere }), path: other.path }, low)
      const minutes = 5 * 60_000 + 2_000
      service().world.advance(minutes)
      try {
        await refused(makeStore(shop, { payment_tx_hash: late }), low)
      } finally {
        service().world.advance(-minutes)
      }
      const sold = await ask(service(), makeStore(shop, { payment_tx_hash: early }))
      expect(await readReceipt(service(), sold)).toMatchObject({ amount: '1000', change: '0' })
      expect(await readBalance(service(), shop.owner.address)).toBe(2000n)
      await expectBalanced(service())
    })

    test('members without a proof count as absent, and a header beside them pays', async () => {
      const shop = await scene()
      const empty = { payment_tx_hash: '', amount_utia: 0, user_address: null, quoteId: '' }
      await refused(makeStore(shop, empty), /Payment is required/)
      const asked = makeStore(shop, { payment_tx_hash: `0x${'ab'.repeat(32)}`, amount_utia: 1 })
      const { payTo, extra } = findNativeEntry(await quote(service(), makeStore(shop)))
      const hash = await shop.owner.transfer({ to: payTo, value: price })
      const sold = await ask(service(), asked, makeProof(extra.quoteId, hash))
      expect(sold.status, sold.text).toBe(200)
      expect(await stored(shop)).toEqual(records)
    })

    test('a hash that is none is refused and named, and a free store does not look at it', async () => {
      const shop = await scene()
      const asked = makeStore(shop, { payment_tx_hash: 'abc' })
      const reply = await ask(service(), asked)
      expect(reply.status).toBe(400)
      expect(reply.body).toMatchObject({
        code: 'PAYMENT_MALFORMED',
        details: { field: 'payment_tx_hash' },
      })
      const free = { ...shop, root: `${shop.app.appId}::free` }
      const given = await ask(
        service(),
        makeStore(free, { payment_tx_hash: `0x${'ab'.repeat(32)}` }),
      )
      expect(given.status, given.text).toBe(200)
      expect(await stored(free)).toEqual(records)
    })

    test('a proof in the body of anything but a store is no payment', async () => {
      const shop = await scene()
      const asked = list({ root: shop.root, payment_tx_hash: `0x${'ab'.repeat(32)}` })
      const reply = await ask(service(), { ...asked, headers: shop.headers })
      expect(reply.status).not.toBe(402)
    })
  },
  { devnet: true },
)

function decoded(header: string | null): Json {
  return JSON.parse(Buffer.from(header ?? '', 'base64').toString())
}
