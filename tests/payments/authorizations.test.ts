import { encodeFunctionData, type Hex, parseAbi } from 'viem'
import { describe, expect, test } from 'vitest'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import {
  type Asked,
  ask,
  createFundedBuyer,
  type Forged,
  list,
  makeBuyer,
  type PaymentHeader,
  parseEntry,
  quote,
  readBalance,
} from '../support/buyer.ts'
import { expectBalanced, openMarket, readChainBalance, readEarnings } from '../support/market.ts'
import { awaitMined, connectDevnet } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import { makeDyingPayments, replacePayments } from './dying-payments.ts'
import { replaceFacilitators } from './false-facilitators.ts'
import { runWhileSettling } from './while-settling.ts'

const token = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, bytes signature)',
])
const multicall = parseAbi([
  'function aggregate3((address target, bool allowFailure, bytes callData)[] calls) returns ((bool success, bytes returnData)[])',
])
const multicallAddress = '0xca11bde05977b3631167028862be2a173976ca11'

/** Longer than any service lets an unused authorization be. */
const forEver = { authorization: { validBefore: String(2n ** 64n) } }

withService(
  (service) => {
    /** A third party hands the authorizations of these payments to the token, all in one transaction. */
    const submitTogether = async (payments: readonly Record<string, string>[]) => {
      const { devnet } = service().running
      if (devnet === undefined) throw new Error('this needs the devnet')
      const chain = connectDevnet(service())
      const calls = payments.map((header) => {
        const text = Buffer.from(
          header['payment-signature'] ?? header['x-payment'] ?? '',
          'base64',
        ).toString()
        const { authorization: one, signature } = JSON.parse(text).payload
        const { from, to, value, validAfter, validBefore, nonce } = one
        const numbers = [BigInt(value), BigInt(validAfter), BigInt(validBefore)] as const
        const args = [from, to, ...numbers, nonce, signature] as const
        const callData = encodeFunctionData({ abi: token, args })
        return { target: devnet.token as Hex, allowFailure: false, callData }
      })
      const { address } = makeBuyer().account
      await chain.setBalance({ address, value: 10n ** 20n })
      await chain.impersonateAccount({ address })
      const hash = await chain.request({
        method: 'eth_sendTransaction' as never,
        params: [
          {
            from: address,
            to: multicallAddress,
            gas: '0xf4240',
            data: encodeFunctionData({ abi: multicall, args: [calls] }),
          },
        ] as never,
      })
      const receipt = await awaitMined(chain, String(hash))
      expect(receipt.status).toBe('success')
    }

    /** Sends the payment of a header as a deposit. */
    const settle = (header: PaymentHeader) => {
      const paymentPayload = JSON.parse(
        Buffer.from(Object.values(header)[0] ?? '', 'base64').toString(),
      )
      const { x402Version } = paymentPayload
      return service().request('POST', '/api/payments/settle', {
        body: { x402Version, paymentPayload, paymentRequirements: {} },
      })
    }

    test('an authorization whose claim failed becomes its payer’s balance where he settles it as a deposit, and then buys nothing', async () => {
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = await createFundedBuyer(service(), 3000n)
      const asked = list({ root: market.root, limit: 3 })
      const header = await buyer.payV2(await quote(service(), asked))
      const { ports } = service().running.service.payments
      const failing = replaceFacilitators(ports, () => ({
        settle: async () => ({ state: 'failed', reason: 'transaction_reverted', final: false }),
      }))
      replacePayments(service(), new Payments(failing))
      const failed = await ask(service(), asked, header)
      replacePayments(service(), new Payments(ports))
      expect(failed.body.error).toMatch(/not settled: transaction_reverted/)
      // A party without the quote does not take the payment from its purpose.
      const { payload } = JSON.parse(
        Buffer.from(header['payment-signature'] ?? '', 'base64').toString(),
      )
      const own = { x402Version: 2, accepted: parseEntry(await quote(service(), asked)), payload }
      const thief = { 'payment-signature': Buffer.from(JSON.stringify(own)).toString('base64') }
      expect((await settle(thief)).body.code).toBe('PAYMENT_ALREADY_USED')
      for (const reply of [await settle(header), await settle(header)])
        expect(reply.body, reply.text).toMatchObject({ success: true, payer: buyer.address })
      expect((await ask(service(), asked, header)).body.code).toBe('PAYMENT_ALREADY_USED')
      expect(await readBalance(service(), buyer.address)).toBe(3000n)
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectBalanced(service())
    })

    test('P10, A3: a payment whose nonce was used before it came here buys nothing, and only the one that moved its value is credited', async () => {
      const market = await openMarket(service(), { price: { per_row: '100' } })
      const buyer = makeBuyer()
      await service().running.devnet?.faucet(buyer.address, 300n)
      const asked = (offset: number): Asked => list({ root: market.root, limit: 3, offset })
      const payment = async (of: Asked, forged: Forged = {}) =>
        buyer.payV2(await quote(service(), of), forged)
      // The nonces are the same, but the money goes back to the payer.
      const nonce = (n: number) => `0x${`${n}`.repeat(64)}`
      const back = { to: buyer.address }
      await submitTogether([
        await payment(asked(0), { authorization: { nonce: nonce(1), ...back } }),
        await payment(asked(0), { authorization: { nonce: nonce(2), ...back } }),
        await payment(asked(0), { authorization: { nonce: nonce(3) } }),
      ])
      for (const at of [0, 1, 2]) {
        const forged = { authorization: { nonce: nonce(at + 1) } }
        const reply = await ask(service(), asked(at), await payment(asked(at), forged))
        expect(reply.status, reply.text).toBe(402)
        expect(await readBalance(service(), buyer.address)).toBe(at === 2 ? 300n : 0n)
      }
      expect(await readChainBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectBalanced(service())
    })

    describe.each(['payV1', 'payV2'] as const)('authorizations used elsewhere, %s', (version) => {
      async function scene(per_row = '100') {
        const market = await openMarket(service(), { price: { per_row } })
        const buyer = await createFundedBuyer(service(), 10n * BigInt(per_row))
        const asked = list({ root: market.root, limit: 3 })
        const header = await buyer[version](await quote(service(), asked))
        return { market, buyer, asked, header }
      }

      test('A3: an authorization used elsewhere buys nothing and is its payer’s balance, once, whoever brings it and how often', async () => {
        const { market, buyer, asked, header } = await scene()
        await submitTogether([header])
        const first = await ask(service(), asked, header)
        expect(first.status, first.text).toBe(402)
        expect(first.body.error).toMatch(
          /used before .* 300 atomic units \(\$0\.0003\) are on the balance/,
        )
        const later = await Promise.all([1, 2, 3].map(() => ask(service(), asked, header)))
        await service().restart()
        later.push(await ask(service(), asked, header))
        for (const { status, body } of later) {
          expect([status, body.code]).toEqual([409, 'PAYMENT_ALREADY_USED'])
          expect(body.error).toMatch(/taken for the balance of its payer/)
        }
        for (const { text } of [first, ...later]) expect(text).not.toContain('Wien')
        expect(await readBalance(service(), buyer.address)).toBe(300n)
        expect(await readEarnings(service(), market)).toBe(0n)
        await expectBalanced(service())
      })

      test('A3: an authorization used elsewhere is its payer’s balance though it is less than a deposit may be; an unused one, or one for nothing, is none', async () => {
        const { market, buyer, asked, header } = await scene()
        const of = async (value: string) =>
          buyer[version](await quote(service(), asked), {
            authorization: { value },
            accepted: { amount: value },
          })
        const [small, nothing] = [header, await of('0')]
        const unused = await settle(small)
        expect(unused.body.errorReason).toMatch(/value must be at least 1000/)
        await submitTogether([small, nothing])
        for (const reply of [await settle(small), await settle(small)])
          expect(reply.body, reply.text).toMatchObject({ success: true, payer: buyer.address })
        expect((await settle(nothing)).body).toMatchObject({ success: false })
        expect(await readBalance(service(), buyer.address)).toBe(300n)
        expect(await readEarnings(service(), market)).toBe(0n)
        await expectBalanced(service())
      })

      test('A3: an authorization used elsewhere is its payer’s balance though it is valid for longer than an unused one may be', async () => {
        const { market, buyer, asked } = await scene()
        const header = await buyer[version](await quote(service(), asked), forEver)
        const unused = await ask(service(), asked, header)
        expect(unused.status, unused.text).toBe(402)
        expect(unused.body.error).toMatch(/valid_too_long/)
        expect(await service().running.service.payments.listOpenPayments(market.appId, 0)).toEqual(
          [],
        )
        await submitTogether([header])
        const reply = await ask(service(), asked, header)
        expect(reply.body.error).toMatch(
          /used before .* 300 atomic units \(\$0\.0003\) are on the balance/,
        )
        expect(await readBalance(service(), buyer.address)).toBe(300n)
        expect(await readEarnings(service(), market)).toBe(0n)
      })

      test('A3: the same where the process dies at any step, and another one looks at what it left', async () => {
        const { database } = service()
        const { ports } = service().running.service.payments
        for (let step = 0, isOver = false; !isOver; step++) {
          const { buyer, asked } = await scene()
          const header = await buyer[version](await quote(service(), asked), forEver)
          await submitTogether([header])
          const dying = makeDyingPayments(ports, { step, when: 'after' })
          replacePayments(service(), dying.payments)
          await ask(service(), asked, header)
          const fresh = new Payments(ports)
          replacePayments(service(), fresh)
          const page = { olderThanMs: Date.now() + 60_000, after: { at: -1n, id: '' }, limit: 100 }
          for (const claim of await listOpenClaims(database, page)) await fresh.reconcile(claim)
          await ask(service(), asked, header)
          const at = `${step}: ${dying.steps().join(', ')}`
          expect(await readBalance(service(), buyer.address), at).toBe(300n)
          isOver = dying.steps().length <= step
        }
        await expectBalanced(service())
      })

      test('A3: an authorization used elsewhere is its payer’s balance though it has expired, and the quote with it', async () => {
        const { market, buyer, header } = await scene('1000')
        await submitTogether([header])
        service().world.advance(20 * 60_000)
        try {
          for (const reply of [await settle(header), await settle(header)])
            expect(reply.body, reply.text).toMatchObject({ success: true, payer: buyer.address })
        } finally {
          service().world.advance(-20 * 60_000)
        }
        expect(await readBalance(service(), buyer.address)).toBe(3000n)
        expect(await readEarnings(service(), market)).toBe(0n)
        await expectBalanced(service())
      })

      test('A3: an authorization that a third party reads from the chain buys him nothing under a quote of his own', async () => {
        const { market, buyer, asked, header } = await scene()
        await submitTogether([header])
        const name = version === 'payV1' ? 'x-payment' : 'payment-signature'
        const read = JSON.parse(Buffer.from(header[name] ?? '', 'base64').toString())
        const own = { x402Version: 2, accepted: parseEntry(await quote(service(), asked)) }
        const stolen = Buffer.from(JSON.stringify({ ...own, payload: read.payload }))
        const reply = await ask(service(), asked, {
          'payment-signature': stolen.toString('base64'),
        })
        expect(reply.status, reply.text).toBe(402)
        expect(reply.text).not.toContain('Wien')
        // The money belongs to the payer, though another party sent the transaction.
        expect(await readBalance(service(), buyer.address)).toBe(300n)
        expect(await readEarnings(service(), market)).toBe(0n)
        await expectBalanced(service())
      })

      test('A3: an authorization used by somebody who overtakes a claim of this service is this buyer’s purchase', async () => {
        const { market, buyer, asked, header } = await scene()
        const reply = await runWhileSettling(
          service(),
          { before: () => submitTogether([header]) },
          () => ask(service(), asked, header),
        )
        expect(reply.status, reply.text).toBe(200)
        expect((await ask(service(), asked, header)).text).toBe(reply.text)
        expect(await readChainBalance(service(), buyer.address)).toBe(700n)
        expect(await readBalance(service(), buyer.address)).toBe(0n)
        expect(await readEarnings(service(), market)).toBe(240n)
      })
    })
  },
  { devnet: true },
)
