import { limits } from '@tollbase/contract/limits'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import {
  createSIWxClientExtension,
  createSIWxPayload,
  encodeSIWxHeader,
} from '@x402/extensions/sign-in-with-x'
import { wrapFetchWithPayment } from '@x402/fetch'
import { expect, test } from 'vitest'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readChainBalance,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply } from '../support/service.ts'

const decode = (text: string): Json => JSON.parse(Buffer.from(text, 'base64').toString())
const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64')
const funds = 100_000_000n

withService(
  (service) => {
    const market = () => openMarket(service(), { price: { per_row: '1000' } })

    /** A wallet with so much on its balance. */
    const openWallet = async (deposit: bigint) => {
      const buyer = await createFundedBuyer(service())
      const paid = await buyer.buy(service(), depositing(buyer.address, String(deposit)))
      expect(paid.status, paid.text).toBe(200)
      return buyer
    }
    const readOffer = (required: TestReply): Json =>
      decode(required.headers.get('payment-required') ?? '').extensions['sign-in-with-x']

    /** Signs the challenge of a 402 as the stock client does. */
    const sign = async (buyer: Buyer, required: TestReply, forged: object = {}) => {
      const { info, supportedChains } = readOffer(required)
      const complete = { ...info, ...supportedChains[0], ...forged }
      const payload = await createSIWxPayload(complete, buyer.account, complete.uri)
      return { 'sign-in-with-x': encodeSIWxHeader(payload) }
    }
    const signIn = async (buyer: Buyer, asked: Asked) => sign(buyer, await quote(service(), asked))

    test('a stock client signs in, and its balance pays: once under an Idempotency-Key, and no transaction is made', async () => {
      const { root } = await market()
      const buyer = await openWallet(20_000n)
      const client = new x402Client()
        .register('eip155:84532', new ExactEvmScheme(buyer.account))
        .registerExtension(createSIWxClientExtension({ signers: [buyer.account] }))
      const pay = wrapFetchWithPayment(fetch, client)
      const buy = async (limit: number, name: string) => {
        const reply = await pay(`${service().url}/list`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'idempotency-key': name },
          body: JSON.stringify({ root, limit }),
        })
        return { status: reply.status, text: await reply.text(), headers: reply.headers }
      }
      const first = await buy(3, 'question-1')
      expect(first.status, first.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(17_000n)
      const again = await buy(3, 'question-1')
      expect([again.status, again.text]).toEqual([200, first.text])
      const other = await buy(2, 'question-1')
      expect([other.status, JSON.parse(other.text).code]).toEqual([409, 'PAYMENT_ALREADY_USED'])
      expect((await buy(2, 'question-2')).status).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(15_000n)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds - 20_000n)
      expect(decode(first.headers.get('payment-response') ?? '')).toMatchObject({
        ...{ success: true, transaction: '', payer: buyer.address, amount: '3000' },
        paid_from: 'balance',
      })
      expect(await readReceipt(service(), first)).toMatchObject({
        ...{ payer: buyer.address, amount: '3000', paid_from: 'balance' },
      })
      await expectBalanced(service())
    })

    test('where the balance is too low, the stock client pays as it would have', async () => {
      const { root } = await market()
      const buyer = await openWallet(1_000n)
      const client = new x402Client()
        .register('eip155:84532', new ExactEvmScheme(buyer.account))
        .registerExtension(createSIWxClientExtension({ signers: [buyer.account] }))
      const reply = await wrapFetchWithPayment(fetch, client)(`${service().url}/list`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ root, limit: 2 }),
      })
      expect(reply.status, await reply.text()).toBe(200)
      expect(await readChainBalance(service(), buyer.address)).toBe(funds - 3_000n)
      expect(await readBalance(service(), buyer.address)).toBe(1_000n)
    })

    test('a sign-in counts once, for its own request, at this service, by its own wallet, and within its time', async () => {
      const { root } = await market()
      const asked = list({ root, limit: 2 })
      const other = list({ root, limit: 3 })
      const buyer = await openWallet(50_000n)
      const stranger = await createFundedBuyer(service())
      const refuse = async (headers: Record<string, string>, why: string, of = asked) => {
        const reply = await ask(service(), of, headers)
        expect(reply.status, `${why}: ${reply.text}`).toBe(402)
        expect(reply.body.error).toContain(why)
        // The next one can be signed at once.
        expect(readOffer(reply).info.nonce).toHaveLength(96)
      }
      const used = await signIn(buyer, asked)
      const bought = await ask(service(), asked, used)
      expect(bought.status, bought.text).toBe(200)
      // Repeated exactly, it gets what it bought, as any payment does, and buys nothing more.
      const again = await ask(service(), asked, used)
      expect([again.status, again.text]).toEqual([200, bought.text])
      await refuse({ ...used, 'idempotency-key': 'another' }, 'used before')
      await refuse(await signIn(buyer, asked), 'for another request', other)
      const required = await quote(service(), asked)
      const { info } = readOffer(required)
      for (const forged of [
        { domain: 'evil.example', uri: 'https://evil.example/list' },
        { expirationTime: new Date(Date.now() + 3_600_000).toISOString() },
        { issuedAt: new Date(Date.now() + 1_000).toISOString() },
        { statement: 'Sign in to read the news' },
        { requestId: info.requestId.replace(/:.*/, ':1') },
        { nonce: info.nonce.replace(/^./, info.nonce.startsWith('0') ? '1' : '0') },
      ])
        await refuse(await sign(buyer, required, forged), 'has not asked for it')
      await refuse(await sign(buyer, required, { chainId: 'eip155:1' }), 'is not accepted')
      // Somebody else's signature under the address of the wallet.
      const taken = decode((await sign(stranger, required))['sign-in-with-x'])
      const forged = { ...taken, address: buyer.account.address }
      await refuse({ 'sign-in-with-x': encode(forged) }, 'is not of its address')
      const last = await quote(service(), asked)
      const late = await sign(buyer, last)
      const { world } = service().running.service.payments.ports
      const { now } = world
      const endMs = Date.parse(readOffer(last).info.expirationTime)
      Object.assign(world, { now: () => endMs + 1 })
      await refuse(late, 'it is over')
      // One that was refused for its time is still unused, and good until the end of that.
      Object.assign(world, { now: () => endMs })
      const lastly = await ask(service(), asked, late)
      Object.assign(world, { now })
      expect(lastly.status, lastly.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(46_000n)
      await expectBalanced(service())
    })

    test('a sign-in whose first try was cut off before it bought anything buys when it is sent again, once', async () => {
      const { root } = await market()
      const asked = list({ root, limit: 2 })
      const buyer = await openWallet(50_000n)
      const signed = await signIn(buyer, asked)
      const { world } = service().running.service.payments.ports
      const { failpoint } = world
      const cutOff = (point: string) => {
        if (point === 'payment.verified') throw new Error('the process ended')
      }
      Object.assign(world, { failpoint: cutOff })
      const first = await ask(service(), asked, signed)
      Object.assign(world, { failpoint })
      expect(first.status).toBe(500)
      const elsewhere = await ask(service(), asked, { ...signed, 'idempotency-key': 'another' })
      expect([elsewhere.status, elsewhere.body.error]).toEqual([
        402,
        expect.stringContaining('used before'),
      ])
      const second = await ask(service(), asked, signed)
      expect(second.status, second.text).toBe(200)
      const third = await ask(service(), asked, signed)
      expect([third.status, third.text]).toEqual([200, second.text])
      expect(await readBalance(service(), buyer.address)).toBe(48_000n)
      await expectBalanced(service())
    })

    test('a sign-in pays no more than what it says, whatever the price is by then', async () => {
      const shop = await market()
      const asked = list({ root: shop.root, limit: 2 })
      const buyer = await openWallet(50_000n)
      const signed = await signIn(buyer, asked)
      await setPrices(service(), shop, [{ operation: 'read', model: 'per_row', amount: '1001' }])
      const refused = await ask(service(), asked, signed)
      expect(refused.status).toBe(402)
      expect(refused.body.error).toContain('at most 2000')
      expect(await readBalance(service(), buyer.address)).toBe(50_000n)
      const fresh = await ask(service(), asked, await sign(buyer, refused))
      expect(fresh.status, fresh.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(47_998n)
    })

    test('of twenty at once, the balance pays as many as it covers, and is never below zero', async () => {
      const { root } = await market()
      const asked = list({ root, limit: 2 })
      const buyer = await openWallet(9_999n)
      const headers = await Promise.all(Array.from({ length: 20 }, () => signIn(buyer, asked)))
      const replies = await Promise.all(headers.map((one) => ask(service(), asked, one)))
      const statuses = replies.map(({ status }) => status)
      expect(statuses.filter((one) => one === 200)).toHaveLength(4)
      expect(statuses.filter((one) => one === 402)).toHaveLength(16)
      expect(await readBalance(service(), buyer.address)).toBe(1_999n)
      const wallet = await openWallet(9_000n)
      const twice = await signIn(wallet, asked)
      const same = await Promise.all([1, 2, 3].map(() => ask(service(), asked, twice)))
      const sold = same.filter(({ status }) => status === 200)
      expect(new Set(sold.map(({ text }) => text)).size).toBe(1)
      expect(same.filter(({ status }) => status !== 200 && status !== 402)).toEqual([])
      expect(await readBalance(service(), wallet.address)).toBe(7_000n)
      await expectBalanced(service())
    })

    test('a paid write under an Idempotency-Key is written once, and another one with that key is refused', async () => {
      const shop = await openMarket(service(), { records: [] })
      await setPrices(service(), shop, [
        { operation: 'write', model: 'per_record', amount: '1000' },
      ])
      const buyer = await openWallet(9_000n)
      const store = (data: readonly object[]): Asked => ({
        ...{ method: 'POST', path: '/store', headers: shop.headers },
        raw: JSON.stringify({ root: shop.root, data }),
      })
      const send = async (asked: Asked) =>
        ask(service(), asked, { ...(await signIn(buyer, asked)), 'idempotency-key': 'w-1' })
      const asked = store([{ n: 1 }, { n: 2 }])
      const first = await send(asked)
      expect(first.status, first.text).toBe(202)
      // The key of the application, and its Idempotency-Key, give the answer without a payment.
      const again = await ask(service(), asked, { 'idempotency-key': 'w-1' })
      expect([again.status, again.text]).toEqual([202, first.text])
      expect(await readBalance(service(), buyer.address)).toBe(7_000n)
    })

    test('what cannot be read is 400, a deposit is not offered it, and X-Balance: off does not use it', async () => {
      const { root } = await market()
      const asked = list({ root, limit: 1 })
      const buyer = await openWallet(9_000n)
      const good = decode((await signIn(buyer, asked))['sign-in-with-x'])
      for (const header of [
        'no base64!',
        encode({ ...good, notBefore: good.issuedAt }),
        encode({ ...good, signature: '0x12' }),
        encode({ ...good, address: 7 }),
        encode({ ...good, statement: 'a'.repeat(limits.paymentHeaderBytesMax) }),
      ]) {
        const reply = await ask(service(), asked, { 'sign-in-with-x': header })
        expect([400, 431], header.slice(0, 40)).toContain(reply.status)
      }
      const off = await ask(service(), asked, {
        ...(await signIn(buyer, asked)),
        'x-balance': 'off',
      })
      expect(off.status).toBe(402)
      expect(await readBalance(service(), buyer.address)).toBe(9_000n)
      const deposit = await quote(service(), depositing(buyer.address, '5000'))
      expect(readOffer(deposit)).toBeUndefined()
    })
  },
  { devnet: true },
)
