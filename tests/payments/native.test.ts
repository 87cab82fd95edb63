import { createHash } from 'node:crypto'
import { decodeFunctionData, parseAbi } from 'viem'
import { describe, expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { listUnsweptClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import type {
  PaymentMethod,
  PaymentPorts,
} from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import { sweepRound } from '../../packages/server/src/services/payments/settling/sweeper.ts'
import { type Asked, ask, list, quote, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readChainBalance,
  readEarnings,
  readReceipt,
  setPrices,
} from '../support/market.ts'
import {
  connectDevnet,
  createFundedPayer,
  deployToken,
  findNativeEntry,
  makeProof,
  type Payer,
  pay,
} from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestReply, TestService } from '../support/service.ts'
import { replacePayments } from './dying-payments.ts'
import { replaceFacilitators } from './false-facilitators.ts'
import { finalBlocks } from './reorganize.ts'

/** The price of the three rows that each test buys. */
const price = 3000n

withService(
  (service) => {
    const scene = async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      return {
        market,
        payer: await createFundedPayer(service()),
        asked: list({ root: market.root, limit: 3 }),
      }
    }
    const refused = async (asked: Asked, header: Record<string, string>, why: RegExp) => {
      const reply = await ask(service(), asked, header)
      expect(reply.status, reply.text).toBe(402)
      expect(reply.body.error).toMatch(why)
      return reply
    }
    /** Nothing was sold, and the payer's money here is its own. */
    const expectUnsold = async (market: Market, payer: Payer, balance = 0n) => {
      expect(await readEarnings(service(), market)).toBe(0n)
      expect(await readBalance(service(), payer.address)).toBe(balance)
      await expectBalanced(service())
    }

    test('a 402 offers a transfer beside the signature, to an address of this quote alone', async () => {
      const { asked } = await scene()
      const [one, other] = [await quote(service(), asked), await quote(service(), asked)]
      const { payTo: treasury } = one.body.accepts[0]
      expect(one.body.accepts).toHaveLength(2)
      const [signed, native] = one.body.accepts
      expect(native).toEqual({
        ...signed,
        payTo: native.payTo,
        extra: { ...signed.extra, paymentMethod: 'native' },
      })
      expect(signed.extra.paymentMethod).toBe('x402-facilitator')
      expect(new Set([treasury, native.payTo, findNativeEntry(other).payTo]).size).toBe(3)
      const header = one.headers.get('payment-required') ?? ''
      const { accepts } = JSON.parse(Buffer.from(header, 'base64').toString())
      const schemes = accepts.map(({ scheme }: Json) => scheme)
      expect(schemes).toEqual(['exact', 'upto', 'batch-settlement'])
      expect(accepts[0].payTo).toBe(treasury)
    })

    test('a transfer buys the request; the receipt, the ledger and the payment say what moved', async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const sold = await ask(service(), asked, header)
      expect(sold.status, sold.text).toBe(200)
      expect(sold.body.records).toHaveLength(3)
      const settlement = JSON.parse(sold.headers.get('x-payment-response') ?? '')
      const { txHash } = decoded(header).payload
      expect(settlement).toMatchObject({
        success: true,
        txHash,
        network: 'base-sepolia',
        blockHeight: expect.any(Number),
        amount: String(price),
        confirmedAt: expect.stringMatching(/^\d{4}-.*Z$/),
        payer: payer.address,
      })
      const receipt = await readReceipt(service(), sold)
      expect(receipt).toMatchObject({
        payer: payer.address,
        transaction: txHash,
        amount: String(price),
        deposited: String(price),
        change: '0',
        quote_hash: createHash('sha256').update(decoded(header).quoteId).digest('hex'),
      })
      const id = sold.headers.get('x-payment-id')
      const { body } = await service().request('GET', `/api/payments/${id}`)
      expect(body).toMatchObject({
        state: 'delivered',
        network: 'eip155:84532',
        payer: payer.address,
        amount: String(price),
        transaction: txHash,
      })
      expect(await readEarnings(service(), market)).toBe(2400n)
      await expectBalanced(service())
    })

    test('P1: a repeated transfer gets the kept answer and costs nothing; for another request it is refused', async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const first = await ask(service(), asked, header)
      const { quoteId, payload } = decoded(header)
      // A client signs the time of each try.
      const later = makeProof(quoteId, payload.txHash.toUpperCase().replace('X', 'x'))
      for (const again of [header, later]) {
        const reply = await ask(service(), asked, again)
        expect(reply.status).toBe(200)
        expect(reply.text).toBe(first.text)
      }
      const other = list({ root: market.root, limit: 2 })
      await refused(other, header, /quote \(quoteId\) is not one for this request/)
      expect(await readEarnings(service(), market)).toBe(2400n)
      await expectBalanced(service())
    })

    test('P2: a transfer used 100 times at once is one sale', async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const replies = await Promise.all(
        Array.from({ length: 100 }, () => ask(service(), asked, header)),
      )
      expect(new Set(replies.map(({ status, text }) => `${status} ${text}`)).size).toBe(1)
      expect(replies[0]?.status).toBe(200)
      expect(await readEarnings(service(), market)).toBe(2400n)
      await expectBalanced(service())
    })

    test('P1: a transfer that comes twice gets one answer, also where its money is sold and swept while the second request asks the chain for it', async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const { ports } = service().running.service.payments
      const native = requirePresent(ports.methods[0]?.native, 'a network with transfers')
      const { find } = native
      let first: TestReply | undefined
      const slow: typeof find = async (...wanted) => {
        Object.assign(native, { find })
        first = await ask(service(), asked, header)
        await connectDevnet(service()).mine({ blocks: finalBlocks })
        await sweepRound(ports, service().running.service.log)
        return find(...wanted)
      }
      Object.assign(native, { find: slow })
      const second = await ask(service(), asked, header)
      expect(first?.status, first?.text).toBe(200)
      expect(second.status, second.text).toBe(200)
      expect(second.text).toBe(first?.text)
      expect(await readEarnings(service(), market)).toBe(2400n)
      await expectBalanced(service())
    })

    test("P11: another buyer with his own quote gains nothing by the victim's hash", async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const { txHash } = decoded(header).payload
      const own = findNativeEntry(await quote(service(), asked)).extra.quoteId
      for (const more of [{}, { sender: payer.address }])
        await refused(asked, makeProof(own, txHash, more), /moved no USDC .* to 0x/)
      const sold = await ask(service(), asked, header)
      expect(sold.status).toBe(200)
      await refused(asked, makeProof(own, txHash), /moved no USDC/)
      expect(await readEarnings(service(), market)).toBe(2400n)
    })

    test('P11: the victim’s request and hash buy nothing without his quote, before and after his own use', async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const { txHash } = decoded(header).payload
      const without = makeProof(undefined, txHash)
      await refused(asked, without, /only together with the quote \(quoteId\)/)
      expect((await ask(service(), asked, header)).status).toBe(200)
      await refused(asked, without, /only together with the quote \(quoteId\)/)
      expect(await readEarnings(service(), market)).toBe(2400n)
    })

    test('P11: a sender that is not the one of the transfer is refused, and the honest retry goes through', async () => {
      const { market, payer, asked } = await scene()
      const { quoteId, payload } = decoded(await pay(service(), payer, asked))
      const lie = makeProof(quoteId, payload.txHash, { sender: `0x${'77'.repeat(20)}` })
      await refused(asked, lie, /another sender/)
      await expectUnsold(market, payer)
      const honest = makeProof(quoteId, payload.txHash, { sender: payer.account.address })
      expect((await ask(service(), asked, honest)).status).toBe(200)
    })

    test('P4: another token, another recipient and a reverted transaction move nothing that counts', async () => {
      const { market, payer, asked } = await scene()
      const { payTo, extra } = findNativeEntry(await quote(service(), asked))
      const token = await deployToken(service(), payer.address)
      const elsewhere = `0x${'55'.repeat(20)}`
      const foreign = await payer.transfer({ to: payTo, value: price, token })
      await refused(asked, makeProof(extra.quoteId, foreign), /moved no USDC \(0x036c.*\) to 0x/)
      const lost = await payer.transfer({ to: elsewhere, value: price })
      await refused(asked, makeProof(extra.quoteId, lost), /moved no USDC/)
      const reverted = await payer.transfer({ to: payTo, value: 10n ** 15n })
      await refused(asked, makeProof(extra.quoteId, reverted), /was reverted \(txHash\)/)
      await expectUnsold(market, payer)
    })

    test('P4: a transfer of too little buys nothing and is on the balance of the sender, once', async () => {
      const { market, payer, asked } = await scene()
      const { payTo, extra } = findNativeEntry(await quote(service(), asked))
      const hash = await payer.transfer({ to: payTo, value: price - 1n })
      const all = await Promise.all(
        [1, 2, 3, 4].map(() =>
          refused(
            asked,
            makeProof(extra.quoteId, hash),
            /2999, is less than the price, 3000; its 2999/,
          ),
        ),
      )
      await refused(asked, makeProof(extra.quoteId, hash), /on the balance of 0x/)
      expect(new Set(all.map(({ body }) => body.error)).size).toBe(1)
      await expectUnsold(market, payer, price - 1n)
    })

    test('a transfer of too much is deposited whole: the price is charged, the change stays', async () => {
      const { market, payer, asked } = await scene()
      const { payTo, extra } = findNativeEntry(await quote(service(), asked))
      const hash = await payer.transfer({ to: payTo, value: price + 500n })
      const sold = await ask(service(), asked, makeProof(extra.quoteId, hash))
      expect(sold.status, sold.text).toBe(200)
      expect(await readReceipt(service(), sold)).toMatchObject({
        amount: '3000',
        deposited: '3500',
        change: '500',
      })
      expect(await readBalance(service(), payer.address)).toBe(500n)
      expect(await readEarnings(service(), market)).toBe(2400n)
      await expectBalanced(service())
    })

    test('P5: a transfer in time counts though its proof comes hours later; one that came too late is a deposit', async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const hours = 23 * 3_600_000
      service().world.advance(hours)
      const sold = await ask(service(), asked, header)
      service().world.advance(-hours)
      expect(sold.status, sold.text).toBe(200)
      // The quote is so old that it has expired by the chain's clock.
      service().world.advance(-400_000)
      const stale = findNativeEntry(await quote(service(), asked))
      service().world.advance(400_000)
      const late = await payer.transfer({ to: stale.payTo, value: price })
      await refused(
        asked,
        makeProof(stale.extra.quoteId, late),
        /after the quote .* had expired; its 3000/,
      )
      expect(await readEarnings(service(), market)).toBe(2400n)
      expect(await readBalance(service(), payer.address)).toBe(price)
    })

    test('a proof a day after the transfer buys nothing, and the money is not lost', async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const day = 24 * 3_600_000 + 60_000
      service().world.advance(day)
      const reply = await ask(service(), asked, header)
      service().world.advance(-day)
      expect(reply.status).toBe(402)
      expect(reply.body.error).toMatch(/older than 24 hours .*; its 3000/)
      await expectUnsold(market, payer, price)
    })

    test('a transaction that is not mined yet is neither a payment nor a reason to ask for another', async () => {
      const { market, payer, asked } = await scene()
      const { payTo, extra } = findNativeEntry(await quote(service(), asked))
      const signed = await payer.sign({ to: payTo, value: price })
      const unknown = await ask(service(), asked, makeProof(extra.quoteId, signed.hash))
      expect(unknown.status).toBe(503)
      expect(unknown.body.code).toBe('PAYMENT_PENDING')
      expect(Number(unknown.headers.get('retry-after'))).toBeGreaterThan(0)
      await expectUnsold(market, payer)
      await signed.send()
      await payer.mined(signed.hash)
      const sold = await ask(service(), asked, makeProof(extra.quoteId, signed.hash))
      expect(sold.status, sold.text).toBe(200)
    })

    test('a transaction that waits for its block is waited for', async () => {
      const { payer, asked } = await scene()
      const { payTo, extra } = findNativeEntry(await quote(service(), asked))
      const held = await payer.sign({ to: payTo, value: price }, 1)
      await held.send()
      const reply = ask(service(), asked, makeProof(extra.quoteId, held.hash))
      await payer.transfer({ to: payer.address, value: 1n })
      expect((await reply).status).toBe(200)
    })

    test('a name that is none of our networks is taken for the network of the quote, another one of ours is not', async () => {
      const { payer, asked } = await scene()
      const { quoteId, payload } = decoded(await pay(service(), payer, asked))
      const { txHash } = payload
      await refused(asked, makeProof(quoteId, txHash, { network: 'base' }), /not accepted/)
      const sold = await ask(service(), asked, makeProof(quoteId, txHash, { network: 'mocha-4' }))
      expect(sold.status, sold.text).toBe(200)
      expect(JSON.parse(sold.headers.get('x-payment-response') ?? '').network).toBe('base-sepolia')
    })

    test('a quote that is not ours, or of another form, is refused', async () => {
      const { payer, asked } = await scene()
      const { quoteId, payload } = decoded(await pay(service(), payer, asked))
      const last = quoteId.endsWith('A') ? 'B' : 'A'
      for (const forged of [`${quoteId.slice(0, -1)}${last}`, `${quoteId}A`, 'q1'])
        await refused(asked, makeProof(forged, payload.txHash), /is not one for this request/)
    })

    test('a write is bought by a transfer and written once', async () => {
      const market = await openMarket(service(), { records: [] })
      const rule = { operation: 'write', model: 'per_record', amount: '1000' }
      await setPrices(service(), market, [rule])
      const raw = JSON.stringify({ root: market.root, data: [{ n: 1 }, { n: 2 }] })
      const asked = { method: 'POST', path: '/store?wait=true', raw, headers: market.headers }
      const payer = await createFundedPayer(service())
      const header = await pay(service(), payer, asked)
      const replies = await Promise.all([1, 2, 3].map(() => ask(service(), asked, header)))
      for (const reply of replies) expect(reply.status, reply.text).toBe(200)
      const { body } = await service().request('POST', '/list', {
        headers: market.headers,
        body: { root: market.root },
      })
      expect(body.records.map(({ n }: Json) => n)).toEqual([1, 2])
      expect(await readEarnings(service(), market)).toBe(1600n)
    })

    test('a transfer that cannot buy its request any more is settled as a deposit, once, and then buys nothing', async () => {
      const { market, payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      const other = await createFundedPayer(service())
      const collection = `/api/apps/${market.appId}/collections/${market.collection}`
      await service().request('DELETE', collection, { headers: market.headers })
      expect((await ask(service(), asked, header)).status).toBe(404)
      const settle = (proven: Record<string, string>) => {
        const body = { x402Version: 1, paymentPayload: decoded(proven), paymentRequirements: {} }
        return service().request('POST', '/api/payments/settle', { body })
      }
      const settled = await Promise.all([1, 2, 3].map(() => settle(header)))
      for (const { body } of settled)
        expect(body).toMatchObject({ success: true, payer: payer.address })
      expect(new Set(settled.map(({ text }) => text)).size).toBe(1)
      const { txHash } = decoded(header).payload
      for (const quoteId of [undefined, 'q1.of.nobody'])
        expect((await settle(makeProof(quoteId, txHash))).body).toMatchObject({ success: false })
      const fresh = await scene()
      const used = await pay(service(), other, fresh.asked)
      expect((await ask(service(), fresh.asked, used)).status).toBe(200)
      expect((await settle(used)).body.code).toBe('PAYMENT_ALREADY_USED')
      await expectUnsold(market, payer, price)
    })

    describe('transfers whose claim failed for good, as in a reorganization, and which are there after all', () => {
      const forgotten = async () => {
        const { market, payer, asked } = await scene()
        const header = await pay(service(), payer, asked)
        const { ports } = service().running.service.payments
        const settle = async () =>
          ({ state: 'failed', reason: 'transaction_gone', final: true }) as const
        const methods = ports.methods.map(
          (method): PaymentMethod =>
            method.native ? { ...method, native: { ...method.native, settle } } : method,
        )
        replacePayments(service(), new Payments({ ...ports, methods }))
        await refused(asked, header, /not settled: transaction_gone/)
        replacePayments(service(), new Payments(ports))
        await expectUnsold(market, payer)
        return { market, payer, asked, header }
      }

      test('a transfer whose claim failed is its payer’s balance where it is settled as a deposit, and then buys nothing', async () => {
        const { market, payer, asked, header } = await forgotten()
        const body = { x402Version: 1, paymentPayload: decoded(header), paymentRequirements: {} }
        const settle = () => service().request('POST', '/api/payments/settle', { body })
        for (const reply of [await settle(), await settle()])
          expect(reply.body, reply.text).toMatchObject({ success: true, payer: payer.address })
        expect((await ask(service(), asked, header)).body.code).toBe('PAYMENT_ALREADY_USED')
        await expectUnsold(market, payer, price)
      })

      test('a transfer whose claim failed is its payer’s balance where it cannot buy its request any more', async () => {
        const { market, payer, asked, header } = await forgotten()
        const day = 24 * 3_600_000 + 60_000
        service().world.advance(day)
        try {
          await refused(asked, header, /older than 24 hours .*; its 3000 .* on the balance/)
        } finally {
          service().world.advance(-day)
        }
        await expectUnsold(market, payer, price)
      })

      test('a transfer whose claim failed buys its request as ever', async () => {
        const { market, asked, header } = await forgotten()
        const sold = await ask(service(), asked, header)
        expect(sold.status, sold.text).toBe(200)
        expect(await readEarnings(service(), market)).toBe(2400n)
      })
    })

    test('a store that has become free is paid as its quote says where the transfer was made', async () => {
      const market = await openMarket(service(), { records: [] })
      const priced = (amount: string) =>
        setPrices(service(), market, [{ operation: 'write', model: 'per_record', amount }])
      await priced('1000')
      const raw = JSON.stringify({ root: market.root, data: [{ n: 1 }] })
      const asked = { method: 'POST', path: '/store?wait=true', raw, headers: market.headers }
      const payer = await createFundedPayer(service())
      const header = await pay(service(), payer, asked)
      await priced('0')
      const sold = await ask(service(), asked, header)
      expect(sold.status, sold.text).toBe(200)
      expect(await readReceipt(service(), sold)).toMatchObject({ deposited: '1000' })
      const unknown = makeProof('q1.of.nobody', `0x${'12'.repeat(32)}`)
      const free = { ...asked, raw: raw.replace('"n":1', '"n":2') }
      expect((await ask(service(), free, unknown)).status).toBe(200)
      await expectBalanced(service())
    })

    test('deposit addresses are swept to the treasury, once, over restarts', async () => {
      const { ports } = service().running.service.payments
      const [method] = ports.methods
      const treasury = method?.network.payTo ?? ''
      // Transfers that earlier tests left may need more than one round where the chain is slow.
      while ((await unswept(ports)).length > 0) await sweepForGood(service(), ports)
      const before = await readChainBalance(service(), treasury)
      const { market, payer, asked } = await scene()
      const { payTo, extra } = findNativeEntry(await quote(service(), asked))
      const first = await payer.transfer({ to: payTo, value: price + 7n })
      expect((await ask(service(), asked, makeProof(extra.quoteId, first))).status).toBe(200)
      const unmatched = await payer.transfer({ to: payTo, value: 10n })
      await refused(asked, makeProof(extra.quoteId, unmatched), /less than the price/)
      expect(await readChainBalance(service(), payTo)).toBe(price + 17n)
      await service().restart()
      const { payments, log } = service().running.service
      await Promise.all([sweepRound(payments.ports, log), sweepRound(payments.ports, log)])
      while ((await unswept(payments.ports)).length > 0)
        await sweepForGood(service(), payments.ports)
      await sweepRound(payments.ports, log)
      expect(await readChainBalance(service(), payTo)).toBe(0n)
      expect((await readChainBalance(service(), treasury)) - before).toBe(price + 17n)
      expect(await readEarnings(service(), market)).toBe(2400n)
      expect(await readBalance(service(), payer.address)).toBe(17n)
      await expectBalanced(service())
    })

    test('a sweep that fails is tried again under another name, a bounded number of times', async () => {
      const { payer, asked } = await scene()
      const { payTo, extra } = findNativeEntry(await quote(service(), asked))
      const hash = await payer.transfer({ to: payTo, value: price })
      expect((await ask(service(), asked, makeProof(extra.quoteId, hash))).status).toBe(200)
      const { payments, log } = service().running.service
      const tried: string[] = []
      // A node whose blocks revert every sweep.
      const reverting = replaceFacilitators(payments.ports, () => ({
        settle: async (id) => {
          tried.push(id)
          return { state: 'failed', reason: 'transaction_reverted', final: false }
        },
      }))
      for (let round = 0; round < 12; round++) await sweepRound(reverting, log)
      expect(tried).toHaveLength(10)
      expect(new Set(tried).size).toBe(10)
      expect(await readChainBalance(service(), payTo)).toBe(price)
    })

    test('P11: a sweep that anybody can read on the chain, signature and all, is no payment', async () => {
      const { payer, asked } = await scene()
      const header = await pay(service(), payer, asked)
      expect((await ask(service(), asked, header)).status).toBe(200)
      const { ports } = service().running.service.payments
      await sweepRound(ports, service().running.service.log)
      const authorization = await lastAuthorization(service())
      expect(authorization.authorization.value).toBe(String(price))
      const thief = await scene()
      const stolen = {
        x402Version: 1,
        scheme: 'exact',
        network: 'base-sepolia',
        payload: authorization,
      }
      await refused(
        thief.asked,
        { 'x-payment': Buffer.from(JSON.stringify(stolen)).toString('base64') },
        /authorization.from must not be an address of this service/,
      )
      const body = { x402Version: 1, paymentPayload: stolen, paymentRequirements: {} }
      const settled = await service().request('POST', '/api/payments/settle', { body })
      expect(settled.body).toMatchObject({ success: false, transaction: '' })
      const verified = await service().request('POST', '/api/payments/verify', { body })
      expect(verified.body).toMatchObject({ isValid: false })
      expect(await readBalance(service(), authorization.authorization.from)).toBe(0n)
      await expectUnsold(thief.market, thief.payer)
    })
  },
  { devnet: true },
)

/** A sweep is done once its block is final. */
async function sweepForGood(service: TestService, ports: PaymentPorts): Promise<void> {
  await sweepRound(ports, service.running.service.log)
  await connectDevnet(service).mine({ blocks: finalBlocks })
  await sweepRound(ports, service.running.service.log)
}

function unswept({ database, methods }: PaymentPorts) {
  const networks = methods.map(({ network }) => network)
  return listUnsweptClaims(database, {
    networks,
    triesMax: 10,
    after: { at: -1n, id: '' },
    limit: 50,
  })
}

function decoded(header: Readonly<Record<string, string>>): Json {
  return JSON.parse(Buffer.from(header['x-payment'] ?? '', 'base64').toString())
}

/** Reads the newest transferWithAuthorization of the chain, as the X-PAYMENT of version 1 would carry it. */
async function lastAuthorization(service: TestService): Promise<Json> {
  const chain = connectDevnet(service)
  const abi = parseAbi([
    'event AuthorizationUsed(address indexed authorizer, bytes32 indexed nonce)',
    'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  ])
  const logs = await chain.getContractEvents({
    abi,
    eventName: 'AuthorizationUsed',
    fromBlock: 0n,
  })
  const hash = logs.at(-1)?.transactionHash
  expect(hash).toBeDefined()
  const { input } = await chain.getTransaction({ hash: hash ?? '0x' })
  const { args } = decodeFunctionData({ abi, data: input })
  const [from, to, value, validAfter, validBefore, nonce, v, r, s] = args
  return {
    signature: `${r}${s.slice(2)}${v.toString(16)}`,
    authorization: {
      from,
      to,
      value: String(value),
      validAfter: String(validAfter),
      validBefore: String(validBefore),
      nonce,
    },
  }
}
