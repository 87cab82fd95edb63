import { limits } from '@tollbase/contract/limits'
import { verifyReceipt } from '@tollbase/verify/receipt'
import { x402Client } from '@x402/core/client'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { wrapFetchWithPayment } from '@x402/fetch'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { expect, test } from 'vitest'
import { requirePresent } from '../../packages/server/src/base/assert.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { dropFees } from '../../packages/server/src/services/payments/accounts/holds.ts'
import { listOpenClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import { findClaim } from '../../packages/server/src/services/payments/claims/claim-store.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import {
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  makeBuyer,
  type PaymentHeader,
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
import { handIn } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { Json, TestService } from '../support/service.ts'
import { type Death, makeDyingPayments, replacePayments } from './dying-payments.ts'
import { replaceFacilitators } from './false-facilitators.ts'

const price = 1_000n

/** An application whose buyers pay to its own wallet, with so much on its balance for the platform's shares. */
async function openDirect(
  service: TestService,
  options: { prepaid?: bigint; rules?: readonly object[]; policy?: object } = {},
) {
  const { prepaid = 1_000n, rules, policy } = options
  const market = await openMarket(service, { ...(policy && { policy }) })
  const perAccess = { operation: 'read', model: 'per_access', amount: String(price) }
  await setPrices(service, market, rules ?? [perAccess])
  const wallet = makeBuyer().address
  const named = await service.request('PATCH', `/api/apps/${market.appId}`, {
    headers: service.operator,
    body: { owner_address: wallet },
  })
  expect(named.status, named.text).toBe(200)
  await choose(service, market, true)
  if (prepaid > 0n) await prepay(service, market, prepaid)
  return { ...market, wallet }
}

async function choose(service: TestService, market: Market, isDirect: boolean): Promise<void> {
  const path = `/api/apps/${market.appId}/payout/settings`
  const body = { direct_settlement: isDirect }
  const set = await service.request('POST', path, { headers: market.headers, body })
  expect(set.status, set.text).toBe(200)
  expect(set.body.direct_settlement).toBe(isDirect)
}

async function prepay(service: TestService, market: Market, amount: bigint) {
  const payer = await createFundedBuyer(service, amount)
  const path = `/api/apps/${market.appId}/wallet/deposit`
  const asked = {
    ...{ method: 'POST', path, headers: market.headers },
    raw: JSON.stringify({ amount: String(amount) }),
  }
  const paid = await payer.buy(service, asked)
  expect(paid.status, paid.text).toBe(200)
}

async function reconcileAll(payments: Payments): Promise<void> {
  const page = { olderThanMs: Date.now() + 1_000, after: { at: -1n, id: '' }, limit: 100 }
  for (const claim of await listOpenClaims(payments.ports.database, page))
    await payments.reconcile(claim)
}

const decode = (text: string): Json => JSON.parse(Buffer.from(text, 'base64').toString())

withService(
  (service) => {
    const payTo = () => service().running.devnet?.network.payTo ?? ''
    const asked = (market: Market) => list({ root: market.root, limit: 2 })
    const listPayees = async (market: Market): Promise<string[]> => {
      const required = await quote(service(), asked(market))
      const { accepts } = decode(required.headers.get('payment-required') ?? '')
      return accepts.filter(({ scheme }: Json) => scheme === 'exact').map((one: Json) => one.payTo)
    }

    /** The first of what is offered goes to this address. */
    const expectPaidTo = async (market: Market, address: string) =>
      expect((await listPayees(market))[0]).toBe(address)
    const buyAll = (headers: readonly PaymentHeader[], market: Market) =>
      Promise.all(headers.map((one) => ask(service(), asked(market), one)))

    test('what the service itself sends out buys nothing of its recipient', async () => {
      const market = await openDirect(service())
      const { devnet } = service().running
      const key = requirePresent(devnet, 'the devnet').keys.treasury.toString('hex')
      const treasury = makeBuyer(privateKeyToAccount(`0x${key}`))
      expect(treasury.address).toBe(payTo())
      const header = await treasury.payV2(await quote(service(), asked(market)))
      const reply = await ask(service(), asked(market), header)
      expect(reply.status, reply.text).toBe(402)
      expect(reply.body.error).toContain('must not be an address of this service')
      expect(await readEarnings(service(), market)).toBe(1_000n)
      expect(await readChainBalance(service(), market.wallet)).toBe(0n)
    })

    test('a payment that somebody used where nobody can look at it asks for no other one, holds up its payer until its end, and the share of its seller for a day more', async () => {
      const market = await openDirect(service())
      const { ports } = service().running.service.payments
      const transaction = `0x${'7'.repeat(64)}`
      const hidden = {
        state: 'pending',
        reason: 'its transaction has too many events to be looked at',
        transaction,
        usedIn: transaction,
      } as const
      const hiding = replaceFacilitators(ports, () => ({
        settle: async () => hidden,
        lookup: async () => hidden,
      }))
      const blind = new Payments(hiding)
      replacePayments(service(), blind)
      const buyer = await createFundedBuyer(service(), 1_500n)
      const sign = async () => buyer.payV2(await quote(service(), asked(market)))
      const header = await sign()
      const pending = await ask(service(), asked(market), header)
      expect([pending.status, pending.body.code], pending.text).toEqual([503, 'PAYMENT_PENDING'])
      const id = pending.body.details.payment_id
      expect(await readEarnings(service(), market)).toBe(800n)
      const setEnd = (agoSeconds: number) =>
        service().database.execute(sql`
          UPDATE operations.claim SET valid_before = ${Math.floor(service().world.now() / 1000) - agoSeconds} WHERE id = ${id}`)
      const end = (await findClaim(ports.database, { id }))?.valid_before
      const readState = async () => (await findClaim(ports.database, { id }))?.state
      const reconcile = async () => {
        for (const claim of [await findClaim(ports.database, { id })])
          await blind.reconcile(requirePresent(claim, 'the claim'))
      }
      replacePayments(service(), new Payments(ports))
      expect((await ask(service(), asked(market), await sign())).body.code).toBe('PAYMENT_PENDING')
      await setEnd(4_000)
      const next = await ask(service(), asked(market), await sign())
      expect(next.status, next.text).toBe(200)
      replacePayments(service(), blind)
      await reconcile()
      expect(await readState()).toBe('ready')
      expect((await ask(service(), asked(market), header)).body.code).toBe('PAYMENT_PENDING')
      await setEnd(100_000)
      service().world.advance(600_000)
      await reconcile()
      replacePayments(service(), new Payments(ports))
      expect(await readState()).toBe('void')
      await dropFees(service().database)
      // The share of the other one alone.
      expect(await readEarnings(service(), market)).toBe(800n)
      const late = await ask(service(), asked(market), header)
      expect([late.status, late.body.code], late.text).toEqual([409, 'PAYMENT_ALREADY_USED'])
      service().world.advance(-600_000)
      await service().database.execute(
        sql`UPDATE operations.claim SET valid_before = ${String(end)}::numeric WHERE id = ${id}`,
      )
    })

    test('a stock client pays the wallet of the seller, and the platform takes its share of the balance', async () => {
      const market = await openDirect(service())
      const key = generatePrivateKey()
      const account = privateKeyToAccount(key)
      await service().running.devnet?.faucet(account.address, 5_000n)
      const before = await readChainBalance(service(), payTo())
      const client = new x402Client().register('eip155:84532', new ExactEvmScheme(account))
      const pay = wrapFetchWithPayment(fetch, client)
      const headers = { 'content-type': 'application/json' }
      const { raw = '' } = asked(market)
      const reply = await pay(`${service().url}/list`, { method: 'POST', headers, body: raw })
      expect(reply.status, await reply.text()).toBe(200)
      const notice = decode(reply.headers.get('payment-response') ?? '')
      expect(notice).toMatchObject({ success: true, amount: '1000' })
      expect(notice.transaction).toMatch(/^0x[0-9a-f]{64}$/)
      expect(await readChainBalance(service(), market.wallet)).toBe(price)
      expect(await readChainBalance(service(), payTo())).toBe(before)
      expect(await readEarnings(service(), market)).toBe(800n)
      expect(await readBalance(service(), account.address.toLowerCase())).toBe(0n)
      const receipt = await readReceipt(service(), reply)
      expect(receipt).toMatchObject({
        ...{ amount: '1000', deposited: '1000', change: '0', paid_to: market.wallet },
        transaction: notice.transaction,
      })
      const known = await service().request('GET', '/.well-known/tollbase')
      const trustedKey: string = known.body.receipt_public_key
      const checks = verifyReceipt(receipt, { trustedKey }).checks
      expect(checks.filter(({ ok }) => !ok)).toEqual([])
      const forged = { ...receipt, paid_to: makeBuyer().address }
      expect(verifyReceipt(forged, { trustedKey }).checks.every(({ ok }) => ok)).toBe(false)
      await expectBalanced(service())
    })

    test('a seller with nothing on its balance is paid on it first, and that pays the shares of the next four', async () => {
      const market = await openDirect(service(), { prepaid: 0n })
      const buyer = await createFundedBuyer(service(), 50_000n)
      for (let n = 0; n < 10; n++) {
        await readEarnings(service(), market)
        await expectPaidTo(market, n % 5 === 0 ? payTo() : market.wallet)
        // Another request's quote is not used, so what it reserves is given back by a restart alone.
        replacePayments(service(), new Payments(service().running.service.payments.ports))
        const reply = await buyer.buy(service(), asked(market))
        expect(reply.status, reply.text).toBe(200)
        replacePayments(service(), new Payments(service().running.service.payments.ports))
      }
      expect(await readChainBalance(service(), market.wallet)).toBe(8n * price)
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectBalanced(service())
    })

    test('its books tell what came directly: statement, payouts, movements and sales', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 50_000n)
      for (let n = 0; n < 3; n++)
        expect((await buyer.buy(service(), asked(market))).status).toBe(200)
      const { headers, appId, wallet } = market
      const statement = await service().request('GET', `/api/apps/${appId}/billing/statement`, {
        headers,
      })
      expect(statement.status, statement.text).toBe(200)
      expect(statement.body).toMatchObject({
        ...{ gross: '3000', fees: '600', other: '-2000', closing_balance: '400' },
      })
      const lines = statement.body.lines.map(({ kind, count, net }: Json) => [kind, count, net])
      expect(lines).toEqual([
        ['deposit', 1, '1000'],
        ['direct', 3, '-3000'],
        ['sale', 3, '2400'],
      ])
      const info = await service().request('POST', `/api/apps/${appId}/payout/info`, { headers })
      expect(info.body).toMatchObject({
        ...{ available_balance: '400', lifetime_earned: '2400', lifetime_paid: '0' },
        ...{ lifetime_direct: '3000', direct_settlement: true, payout_destination: wallet },
      })
    })

    test('where the price has several payees, is not known before, or is a write, it is paid to us', async () => {
      const perRow = { operation: 'read', model: 'per_row', amount: '500' }
      const rows = await openDirect(service(), { rules: [perRow] })
      await expectPaidTo(rows, payTo())
      const bounded = { operation: 'read', model: 'minimum', amount: '1000' }
      // Two rows cost no more than the least that a request costs.
      const known = await openDirect(service(), { rules: [perRow, bounded] })
      await expectPaidTo(known, known.wallet)
      const write = { operation: 'write', model: 'per_record', amount: '1000' }
      const written = await openDirect(service(), { rules: [write] })
      const raw = JSON.stringify({ root: written.root, data: [{ id: 'new' }] })
      const storing = { method: 'POST', path: '/store', raw, headers: written.headers }
      const required = await quote(service(), storing)
      expect(decode(required.headers.get('payment-required') ?? '').accepts[0].payTo).toBe(payTo())
    })

    test('a quote by result is paid directly, and one that the answer does not fit any more buys nothing', async () => {
      const rules = [{ operation: 'read', model: 'per_row', amount: '500' }]
      const policy = { quote: 'by_result' }
      const market = await openDirect(service(), { prepaid: 5_000n, rules, policy })
      const buyer = await createFundedBuyer(service(), 50_000n)
      const wide = list({ root: market.root, limit: 9 })
      expect((await buyer.buy(service(), wide)).status).toBe(200)
      expect(await readChainBalance(service(), market.wallet)).toBe(2_500n)
      const stale = await buyer.payV2(await quote(service(), wide))
      await store(service(), market, [{ id: 'c9', name: 'Wels', population: 1 }])
      const refused = await ask(service(), wide, stale)
      expect(refused.status, refused.text).toBe(402)
      expect(await readChainBalance(service(), market.wallet)).toBe(2_500n)
      expect((await buyer.buy(service(), wide)).status).toBe(200)
      expect(await readChainBalance(service(), market.wallet)).toBe(5_500n)
      await expectBalanced(service())
    })

    test('a balance that covers the price pays first, and the authorization is not sent', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 6_000n)
      expect((await buyer.buy(service(), depositing(buyer.address, '5000'))).status).toBe(200)
      const header = await buyer.payV2(await quote(service(), asked(market)))
      const reply = await ask(service(), asked(market), header)
      expect(reply.status, reply.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(4_000n)
      expect(await readChainBalance(service(), market.wallet)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(1_800n)
      expect((await ask(service(), asked(market), header)).text).toBe(reply.text)
      await expectBalanced(service())
    })

    test('an error costs nothing: the payment is not sent, and the balance of the seller is free', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 5_000n)
      const header = await buyer.payV2(await quote(service(), asked(market)))
      const path = `/api/apps/${market.appId}/collections/${market.collection}`
      const gone = await service().request('DELETE', path, { headers: market.headers })
      expect(gone.status, gone.text).toBe(200)
      const reply = await ask(service(), asked(market), { ...header, 'x-balance': 'off' })
      expect(reply.status, reply.text).toBeGreaterThanOrEqual(400)
      expect(await readChainBalance(service(), buyer.address)).toBe(5_000n)
      expect(await readEarnings(service(), market)).toBe(1_000n)
    })

    test('of many at once no more go directly than the balance has shares for, each is charged once, and the others are asked to pay us', async () => {
      const market = await openDirect(service())
      const buyers = await Promise.all(
        Array.from({ length: 8 }, () => createFundedBuyer(service(), 5_000n)),
      )
      // Each process reserves the shares of its own quotes.
      const headers: PaymentHeader[] = []
      for (const buyer of buyers) {
        replacePayments(service(), new Payments(service().running.service.payments.ports))
        const header = await buyer.payV2(await quote(service(), asked(market)))
        headers.push({ ...header, 'x-balance': 'off' })
      }
      const replies = await buyAll([...headers, ...headers, ...headers], market)
      const statuses = replies.map(({ status }) => status)
      expect(statuses.filter((one) => one === 200)).toHaveLength(15)
      expect(statuses.filter((one) => one === 402)).toHaveLength(9)
      expect(await readChainBalance(service(), market.wallet)).toBe(5n * price)
      expect(await readEarnings(service(), market)).toBe(0n)
      await expectPaidTo(market, payTo())
      await expectBalanced(service())
    })

    /** So many quotes of one payer's, signed at once. */
    const signAll = async (buyer: Buyer, market: Market, count: number) => {
      const headers: PaymentHeader[] = []
      for (let n = 0; n < count; n++) {
        const header = await buyer.payV2(await quote(service(), asked(market)))
        headers.push({ ...header, 'x-balance': 'off' })
      }
      return headers
    }

    test('payments that a payer has not the money for hold nothing of their seller: those beside the first are told to wait', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), price)
      const headers = await signAll(buyer, market, 5)
      const replies = await buyAll(headers, market)
      const others = replies.filter(({ status }) => status !== 200)
      expect(others).toHaveLength(4)
      for (const { status, body } of others) {
        if (status === 402) continue
        expect(body).toMatchObject({ code: 'PAYMENT_PENDING', details: { status: 'pending' } })
        expect(body.error).toContain('Other payments of this wallet')
      }
      // From 1000 on the seller's balance, only the share of the one that was made is gone.
      const held = await service().database.query(
        sql`SELECT id FROM operations.claim WHERE app = ${market.appId} AND state = 'ready'`,
      )
      expect(held.length).toBeLessThanOrEqual(1)
      expect(await readEarnings(service(), market)).toBe(800n - 200n * BigInt(held.length))
      await expectBalanced(service())
    })

    test('a payer who has the money for all of its payments at once makes them all', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 5n * price)
      const replies = await buyAll(await signAll(buyer, market, 5), market)
      expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
      expect(await readChainBalance(service(), market.wallet)).toBe(5n * price)
      await expectBalanced(service())
    })

    test('a payment that waits for its money is counted, to the last unit of what its payer has', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 3n * price - 1n)
      const headers = await signAll(buyer, market, 3)
      const { ports } = service().running.service.payments
      const slow = replaceFacilitators(ports, () => ({
        settle: async () => ({ state: 'pending', reason: 'slow' }),
      }))
      replacePayments(service(), new Payments(slow))
      const errors = []
      for (const header of headers) {
        const { status, body } = await ask(service(), asked(market), header)
        expect(status).toBe(503)
        errors.push(body.details.payment_id === undefined ? 'not claimed' : 'claimed')
      }
      expect(errors).toEqual(['claimed', 'claimed', 'not claimed'])
      expect(await readEarnings(service(), market)).toBe(600n)
      // One unit more, and the third is claimed too.
      await service().running.devnet?.faucet(buyer.address, 1n)
      const { body } = await ask(service(), asked(market), headers[2])
      expect(body.details.payment_id).toBeDefined()
      expect(await readEarnings(service(), market)).toBe(400n)
      // Where no node tells what a payer has, one at a time is claimed.
      const methods = slow.methods.map(({ facilitator: { readFunds: _, ...rest }, ...method }) => ({
        ...method,
        facilitator: rest,
      }))
      replacePayments(service(), new Payments({ ...ports, methods }))
      const other = await createFundedBuyer(service(), 9n * price)
      const [first, second] = await signAll(other, market, 2)
      expect((await ask(service(), asked(market), first)).body.details.payment_id).toBeDefined()
      expect((await ask(service(), asked(market), second)).body.details.payment_id).toBeUndefined()
      replacePayments(service(), new Payments(ports))
      for (const header of [...headers, first ?? {}, second ?? {}])
        expect((await ask(service(), asked(market), header)).status).toBe(200)
      await expectBalanced(service())
    })

    test('a payment to us that is under way counts, too, and no answer is made for one that its payer has not the money for', async () => {
      const [market, elsewhere] = [await openDirect(service()), await openMarket(service(), {})]
      await setPrices(service(), elsewhere, [
        { operation: 'read', model: 'per_access', amount: String(price) },
      ])
      const buyer = await createFundedBuyer(service(), 2n * price - 1n)
      const ours = await buyer.payV2(await quote(service(), asked(elsewhere)))
      const [direct = {}] = await signAll(buyer, market, 1)
      const { ports } = service().running.service.payments
      const slow = replaceFacilitators(ports, () => ({
        settle: async () => ({ state: 'pending', reason: 'slow' }),
      }))
      const passed: string[] = []
      const world = { ...ports.world, failpoint: (one: string) => void passed.push(one) }
      replacePayments(service(), new Payments({ ...slow, world }))
      const claimed = await ask(service(), asked(elsewhere), { ...ours, 'x-balance': 'off' })
      expect(claimed.body.details.payment_id).toBeDefined()
      passed.length = 0
      const waiting = await ask(service(), asked(market), direct)
      expect(waiting.body).toMatchObject({
        code: 'PAYMENT_PENDING',
        details: { status: 'pending' },
      })
      expect(waiting.body.details.payment_id).toBeUndefined()
      expect(passed).toEqual([])
      await service().running.devnet?.faucet(buyer.address, 1n)
      expect((await ask(service(), asked(market), direct)).body.details.payment_id).toBeDefined()
      expect(passed).toContain('payment.verified')
      replacePayments(service(), new Payments(ports))
      for (const [one, header] of [
        [asked(elsewhere), ours],
        [asked(market), direct],
      ] as const)
        expect((await ask(service(), one, { ...header, 'x-balance': 'off' })).status).toBe(200)
      await expectBalanced(service())
    })

    test('an authorization to a seller is good for ten minutes at most, for as long as it holds a share', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 9n * price)
      const { ports } = service().running.service.payments
      const now = Math.floor(Date.now() / 1000)
      const world = Object.create(ports.world, { now: { value: () => now * 1000 } })
      for (const [seconds, status] of [
        [limits.directAuthorizationSecondsMax, 200],
        [limits.directAuthorizationSecondsMax + 1, 402],
      ] as const) {
        const required = await quote(service(), asked(market))
        const authorization = { validBefore: String(now + seconds) }
        const header = await buyer.payV2(required, { authorization })
        replacePayments(service(), new Payments({ ...ports, world }))
        const reply = await ask(service(), asked(market), { ...header, 'x-balance': 'off' })
        replacePayments(service(), new Payments(ports))
        expect(reply.status, reply.text).toBe(status)
        if (status === 402) expect(reply.body.error).toContain('valid_too_long')
      }
      expect(await readEarnings(service(), market)).toBe(800n)
      await expectBalanced(service())
    })

    test('one process quotes no more direct payments than the balance has shares for', async () => {
      const market = await openDirect(service())
      const payees = []
      for (let n = 0; n < 7; n++) payees.push((await listPayees(market))[0])
      expect(payees).toEqual([...Array(5).fill(market.wallet), payTo(), payTo()])
    })

    test('whoever asks one seller for quotes without end turns direct payments of no other one off', async () => {
      const [target, other] = [await openDirect(service()), await openDirect(service())]
      await prepay(service(), target, 200_000n)
      const most = 500
      for (let n = 0; n < most; n += 20)
        await Promise.all(Array.from({ length: 20 }, () => quote(service(), asked(target))))
      expect((await listPayees(target))[0]).toBe(payTo())
      expect((await listPayees(other))[0]).toBe(other.wallet)
      // Once the quotes have ended it is paid directly again.
      service().world.advance(limits.quoteLifetimeSeconds * 1000 + 1_000)
      const later = (await listPayees(target))[0]
      service().world.advance(-limits.quoteLifetimeSeconds * 1000 - 1_000)
      expect(later).toBe(target.wallet)
    })

    test('a payment for another request, another address or a quote of another is refused, and is not sent', async () => {
      const market = await openDirect(service(), { prepaid: 10_000n })
      const other = await openDirect(service(), { prepaid: 10_000n })
      const buyer = await createFundedBuyer(service(), 50_000n)
      const required = await quote(service(), asked(market))
      const header: PaymentHeader = { ...(await buyer.payV2(required)), 'x-balance': 'off' }
      expect((await ask(service(), asked(other), header)).status).toBe(402)
      const own = await buyer.payV2(required, {
        authorization: { to: buyer.address },
        accepted: { payTo: buyer.address },
      })
      expect((await ask(service(), asked(market), { ...own, 'x-balance': 'off' })).status).toBe(402)
      const mixed = await buyer.payV2(required, {
        authorization: { to: other.wallet },
        accepted: { payTo: other.wallet },
      })
      expect((await ask(service(), asked(market), mixed)).status).toBe(402)
      const settling = { x402Version: 2, paymentPayload: decode(header['payment-signature'] ?? '') }
      const settled = await service().request('POST', '/api/payments/settle', {
        body: { ...settling, paymentRequirements: settling.paymentPayload.accepted },
      })
      expect(settled.body.success, settled.text).not.toBe(true)
      expect(await readChainBalance(service(), buyer.address)).toBe(50_000n)
      expect((await ask(service(), asked(market), header)).status).toBe(200)
      const again = list({ root: market.root, limit: 1 })
      expect((await ask(service(), again, header)).body.code).toBe('PAYMENT_ALREADY_USED')
      await expectBalanced(service())
    })

    test('an old client pays directly, too, by what it was told', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 5_000n)
      const header = await buyer.payV1(await quote(service(), asked(market)))
      const reply = await ask(service(), asked(market), { ...header, 'x-balance': 'off' })
      expect(reply.status, reply.text).toBe(200)
      expect(await readChainBalance(service(), market.wallet)).toBe(price)
    })

    test("an authorization that was used before it came here buys nothing, and is nobody's balance", async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 5_000n)
      const header = await buyer.payV2(await quote(service(), asked(market)))
      await handIn(service(), header)
      expect(await readChainBalance(service(), market.wallet)).toBe(price)
      const reply = await ask(service(), asked(market), header)
      expect(reply.status, reply.text).toBe(402)
      expect(reply.body.error).toContain('authorization_used')
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(1_000n)
    })

    test('a seller refunds such a sale from its balance, and a key pays no deposits for what went out', async () => {
      const market = await openDirect(service(), { prepaid: 1_500n })
      const buyer = await createFundedBuyer(service(), 5_000n)
      const reply = await buyer.buy(service(), asked(market))
      const id = reply.headers.get('x-payment-id')
      const path = `/api/apps/${market.appId}/sales/${id}/refund`
      const refund = await service().request('POST', path, { headers: market.headers })
      expect(refund.status, refund.text).toBeLessThan(300)
      expect(await readBalance(service(), buyer.address)).toBe(1_000n)
      expect(await readEarnings(service(), market)).toBe(300n)
      await expectBalanced(service())
    })

    test('whatever step the process dies at, the payment is made once and its answer given, or nothing is taken', async () => {
      for (const when of ['before', 'after'] as const)
        for (let step = 0, isOver = false; !isOver && step < 60; step++)
          isOver = await dieAt({ step, when })
    }, 300_000)

    const dieAt = async (death: Death): Promise<boolean> => {
      const market = await openDirect(service(), { prepaid: 1_000n })
      const buyer = await createFundedBuyer(service(), 5_000n)
      const header = {
        ...(await buyer.payV2(await quote(service(), asked(market)))),
        'x-balance': 'off',
      }
      const { ports } = service().running.service.payments
      const dying = makeDyingPayments(ports, death)
      replacePayments(service(), dying.payments)
      const first = await ask(service(), asked(market), header)
      const isOver = dying.steps().length <= death.step
      const fresh = new Payments(ports)
      replacePayments(service(), fresh)
      const isReconciled = death.step % 2 === 0
      if (isReconciled) await reconcileAll(fresh)
      const moved = await readChainBalance(service(), market.wallet)
      if (moved > 0n && isReconciled) expect(await readEarnings(service(), market)).toBe(800n)
      const second = await ask(service(), asked(market), header)
      const why = JSON.stringify({ death, steps: dying.steps().slice(-3), text: second.text })
      expect(second.status, why).toBe(200)
      if (first.status === 200) expect(second.text).toBe(first.text)
      expect(await readChainBalance(service(), market.wallet), why).toBe(price)
      expect(await readEarnings(service(), market), why).toBe(800n)
      expect(await readBalance(service(), buyer.address), why).toBe(0n)
      await expectBalanced(service())
      return isOver
    }

    test("the platform's share of a payment is that of when its answer was made, whatever the operator takes by then: what was held is what is charged", async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 5_000n)
      const header = await buyer.payV2(await quote(service(), asked(market)))
      const { ports } = service().running.service.payments
      const slow = replaceFacilitators(ports, () => ({
        settle: async () => ({ state: 'pending', reason: 'for now' }),
      }))
      const readHeld = async () => {
        const [row] = await service().database.query<{ held: string }>(sql`
          SELECT coalesce(sum(amount), 0)::text AS held FROM operations.account_hold WHERE account = ${`app:${market.appId}`}`)
        return BigInt(row?.held ?? 0)
      }
      replacePayments(service(), new Payments(slow))
      expect((await ask(service(), asked(market), header)).status).toBe(503)
      expect(await readHeld()).toBe(200n)
      // The operator takes half of everything from now on.
      replacePayments(service(), new Payments({ ...ports, split: { platformBasisPoints: 5_000n } }))
      const sold = await ask(service(), asked(market), header)
      replacePayments(service(), new Payments(ports))
      expect(sold.status, sold.text).toBe(200)
      expect(await readEarnings(service(), market)).toBe(800n)
      expect(await readChainBalance(service(), market.wallet)).toBe(price)
      const { chain, ledger, schema } = ports.tenants.system
      await chain.whenApplied(chain.head().height)
      const entry = await ledger.findSale(
        service().database,
        schema,
        sold.headers.get('x-payment-id') ?? '',
      )
      expect(JSON.parse(entry?.body ?? '{}').sold).toMatchObject([{ gross: '1000', fee: '200' }])
      expect(await readReceipt(service(), sold)).toMatchObject({ amount: '1000', change: '0' })
      await reconcileAll(service().running.service.payments)
      await dropFees(service().database)
      expect(await readHeld()).toBe(0n)
      await expectBalanced(service())
    })

    test('a sale whose process dies before its claim says so is never taken for money on a balance', async () => {
      const market = await openDirect(service(), { prepaid: 1_000n })
      const buyer = await createFundedBuyer(service(), 5_000n)
      const header = {
        ...(await buyer.payV2(await quote(service(), asked(market)))),
        'x-balance': 'off',
      }
      const { database } = service()
      await database.execute(sql`CREATE FUNCTION operations.refuse_end() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION 'it would be %', NEW.state; END $$`)
      await database.execute(sql`CREATE TRIGGER refuse_end BEFORE UPDATE ON operations.claim FOR EACH ROW
        WHEN (NEW.state IN ('delivered', 'deposited')) EXECUTE FUNCTION operations.refuse_end()`)
      const { payments } = service().running.service
      try {
        const first = await ask(service(), asked(market), header)
        expect(first.status, first.text).toBe(200)
        const page = { olderThanMs: Date.now() + 1_000, after: { at: -1n, id: '' }, limit: 100 }
        const open = await listOpenClaims(database, page)
        const claims = open.filter(({ app }) => app === market.appId)
        expect(claims.map(({ state }) => state)).toEqual(['answered'])
        for (const claim of claims)
          await expect(payments.reconcile(claim)).rejects.toThrow('it would be delivered')
      } finally {
        await database.execute(sql`DROP FUNCTION operations.refuse_end CASCADE`)
      }
      await reconcileAll(payments)
      const again = await ask(service(), asked(market), header)
      expect(again.status, again.text).toBe(200)
      expect(await readBalance(service(), buyer.address)).toBe(0n)
      expect(await readChainBalance(service(), market.wallet)).toBe(price)
      await expectBalanced(service())
    })

    test('a payment that fails for good leaves nothing behind', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 5_000n)
      const required = await quote(service(), asked(market))
      const until = String(Math.floor(Date.now() / 1000) + 40)
      const header = await buyer.payV2(required, { authorization: { validBefore: until } })
      const { ports } = service().running.service.payments
      const failing = replaceFacilitators(ports, () => ({
        settle: async () => ({ state: 'failed', reason: 'no luck', final: false }),
      }))
      replacePayments(service(), new Payments(failing))
      const failed = await ask(service(), asked(market), { ...header, 'x-balance': 'off' })
      expect(failed.status, failed.text).toBe(402)
      const fresh = new Payments(ports)
      replacePayments(service(), fresh)
      // It may still be made, so the share stays held.
      expect(await readEarnings(service(), market)).toBe(800n)
      const [claim] = await service().database.query<{ id: string; state: string }>(
        sql`SELECT id, state FROM operations.claim WHERE app = ${market.appId} AND operation = 'list'`,
      )
      expect(claim?.state).toBe('ready')
      // Brought once more, it is made after all.
      const reply = await ask(service(), asked(market), { ...header, 'x-balance': 'off' })
      expect(reply.status, reply.text).toBe(200)
      expect(await readEarnings(service(), market)).toBe(800n)
      await expectBalanced(service())
    })

    test('switched off, the next buyer is asked to pay us, and a quote of before is honoured', async () => {
      const market = await openDirect(service())
      const buyer = await createFundedBuyer(service(), 5_000n)
      const header = await buyer.payV2(await quote(service(), asked(market)))
      await choose(service(), market, false)
      await expectPaidTo(market, payTo())
      const reply = await ask(service(), asked(market), { ...header, 'x-balance': 'off' })
      expect(reply.status, reply.text).toBe(200)
      expect(await readChainBalance(service(), market.wallet)).toBe(price)
    })

    test('tables made anew from the log are the same, and the audit finds no difference', async () => {
      await service().whileStopped(async (config) => {
        expect((await audit(config, () => undefined)).difference).toBeUndefined()
        expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      })
    }, 180_000)
  },
  { devnet: true },
)
