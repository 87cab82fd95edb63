import { randomBytes } from 'node:crypto'
import { setTimeout } from 'node:timers/promises'
import { takeShare } from '@tollbase/testing/by-commit'
import { describe, expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { listUnsweptClaims } from '../../packages/server/src/services/payments/claims/claim-lists.ts'
import {
  type Asked,
  ask,
  type Buyer,
  createFundedBuyer,
  depositing,
  list,
  makeBuyer,
  quote,
  readBalance,
} from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readChainBalance,
  readEarnings,
  setPrices,
} from '../support/market.ts'
import { connectDevnet, createFundedPayer, findNativeEntry, makeProof } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply, TestService } from '../support/service.ts'
import {
  awaitReversal,
  expectAuditEqual,
  finalBlocks,
  passEnd,
  readReversal,
  readTakenBack,
  sendAgain,
  takeBack,
  watchMs,
  watchUntil,
} from './reorganize.ts'
import { makeUptoBuyer } from './upto-buyer.ts'

/** The time-out is for a slow day: each test waits for another process, an audit and many blocks. */
vi.setConfig({ testTimeout: 240_000 })

/** A payment of one kind that is booked, and what its payer could do to have the money twice. */
type Paid = {
  readonly id: string
  /** Reads what the account that got the money may spend. */
  readonly readFree: () => Promise<bigint>
  /** That, while the chain has the payment, and while it does not. */
  readonly free: bigint
  readonly freeWhileGone: bigint
  /** Sends another transaction in place of the payment's. */
  readonly spendElsewhere: () => Promise<void>
  /** The sums of its reversal. */
  readonly reversed: { readonly moved: string; readonly lost: string }
  /** The time after which it can never be made, in seconds. */
  readonly endSeconds: number
  /** Sends what nobody sends again but the payer. */
  readonly sendAgain?: () => Promise<void>
}

/** The places of money beside the service's own address. */
const depositAddresses = new Set<string>()

type Begin = { readonly service: TestService; readonly before: () => Promise<void> }

const funds = 5_000n
const elsewhere = `0x${'9'.repeat(40)}`
const find = { name: { ne: 'Graz' } }
const endSeconds = 1_000
const askFive = ({ root }: Market) => list({ root, limit: 5, find })
const openRows = (service: TestService) => openMarket(service, { price: { per_row: '1000' } })
const getId = (reply: { headers: Headers }) => reply.headers.get('x-payment-id') ?? ''

function expectSold(reply: TestReply): TestReply {
  expect(reply.status, reply.text).toBe(200)
  return reply
}

/** A payer, and a transfer of all that it has to somewhere else, which is not sent. */
async function makeDoubleSpender(service: TestService, value = funds) {
  const buyer = makeBuyer()
  const payer = await createFundedPayer(service, value, buyer.account)
  const other = await payer.sign({ to: elsewhere, value })
  return { buyer, payer, spendElsewhere: other.send }
}

/** Buys four rows for the price of five by an authorization. */
async function payExact({ service, before }: Begin): Promise<Paid> {
  const market = await openRows(service)
  const { buyer, spendElsewhere } = await makeDoubleSpender(service)
  await before()
  const sold = expectSold(await buyer.buy(service, askFive(market)))
  const readFree = () => readBalance(service, buyer.address)
  const reversed = { moved: '1000', lost: '4000' }
  return {
    id: getId(sold),
    ...{ readFree, free: 1_000n, freeWhileGone: 0n, spendElsewhere, reversed, endSeconds },
  }
}

/** The same by a transfer that the payer makes itself. */
async function payNative({ service, before }: Begin): Promise<Paid> {
  const market = await openRows(service)
  const { payer, spendElsewhere } = await makeDoubleSpender(service)
  const entry = findNativeEntry(await quote(service, askFive(market)))
  await before()
  const hash = await payer.transfer({ to: entry.payTo, value: funds })
  const proof = makeProof(entry.extra.quoteId, hash)
  const sold = expectSold(await ask(service, askFive(market), proof))
  const readFree = () => readBalance(service, payer.address)
  const reversed = { moved: '1000', lost: '4000' }
  depositAddresses.add(entry.payTo)
  const chain = connectDevnet(service)
  const request = { method: 'eth_getRawTransactionByHash' as never, params: [hash] as never }
  const serializedTransaction = (await chain.request(request)) as `0x${string}`
  const send = async () => void (await chain.sendRawTransaction({ serializedTransaction }))
  return {
    ...{ id: getId(sold), readFree, free: 1_000n, freeWhileGone: 0n, sendAgain: send },
    ...{ spendElsewhere, reversed, endSeconds: 25 * 3_600 },
  }
}

/** The same by a permit, of which the service takes the true cost. */
async function payUpto({ service, before }: Begin): Promise<Paid> {
  const market = await openRows(service)
  const buyer = await makeUptoBuyer(service)
  const payer = await createFundedPayer(service, 1n, buyer.account)
  const value = await readChainBalance(service, buyer.address)
  const other = await payer.sign({ to: elsewhere, value })
  await before()
  const sold = await buyer.list({ root: market.root, limit: 5, find })
  expect(sold.status, sold.text).toBe(200)
  const readFree = () => readBalance(service, buyer.address)
  const reversed = { moved: '0', lost: '4000' }
  return {
    ...{ id: getId(sold), readFree, free: 0n, freeWhileGone: 0n },
    ...{ spendElsewhere: other.send, reversed, endSeconds },
  }
}

/** Pays a seller's own wallet; the payer has other money on its balance, which is nobody's business. */
async function payDirect({ service, before }: Begin): Promise<Paid> {
  const market = await openMarket(service)
  await setPrices(service, market, [{ operation: 'read', model: 'per_access', amount: '5000' }])
  const body = { owner_address: makeBuyer().address }
  const headers = service.operator
  await service.request('PATCH', `/api/apps/${market.appId}`, { headers, body })
  await service.request('POST', `/api/apps/${market.appId}/payout/settings`, {
    ...{ headers: market.headers, body: { direct_settlement: true } },
  })
  await deposit(service, await createFundedBuyer(service, 1_000n), market)
  const { buyer, spendElsewhere } = await makeDoubleSpender(service)
  const giver = await createFundedBuyer(service, 2_000n)
  expectSold(await giver.buy(service, depositing(buyer.address, '2000')))
  await before()
  const sold = expectSold(await buyer.buy(service, list({ root: market.root, limit: 2 })))
  const readFree = () => readBalance(service, buyer.address)
  const reversed = { moved: '0', lost: '1000' }
  return {
    id: getId(sold),
    ...{ readFree, free: 2_000n, freeWhileGone: 2_000n, spendElsewhere, reversed, endSeconds },
  }
}

function askForDeposit({ appId, headers }: Market, amount: bigint): Asked {
  const raw = JSON.stringify({ amount: String(amount) })
  return { method: 'POST', path: `/api/apps/${appId}/wallet/deposit`, headers, raw }
}

async function deposit(service: TestService, buyer: Buyer, market: Market) {
  const value = await readChainBalance(service, buyer.address)
  return expectSold(await buyer.buy(service, askForDeposit(market, value)))
}

async function depositToWallet({ service, before }: Begin): Promise<Paid> {
  const { buyer, spendElsewhere } = await makeDoubleSpender(service)
  const { address } = makeBuyer()
  await before()
  const paid = expectSold(await buyer.buy(service, depositing(address, String(funds))))
  const readFree = () => readBalance(service, address)
  const reversed = { moved: '5000', lost: '0' }
  return {
    id: paid.body.payment_id,
    ...{ readFree, free: funds, freeWhileGone: 0n, spendElsewhere, reversed, endSeconds },
  }
}

async function depositToApplication({ service, before }: Begin): Promise<Paid> {
  const market = await openMarket(service, { records: [] })
  const { buyer, spendElsewhere } = await makeDoubleSpender(service)
  await before()
  const paid = await deposit(service, buyer, market)
  const readFree = () => readEarnings(service, market)
  const reversed = { moved: '5000', lost: '0' }
  return {
    id: paid.body.payment_id,
    ...{ readFree, free: funds, freeWhileGone: 0n, spendElsewhere, reversed, endSeconds },
  }
}

/** A payment that the service holds after a restore, until its operator decides; the account has other money. */
async function depositHeld({ service, before }: Begin): Promise<Paid> {
  const restore = (at: number | null) =>
    service.whileStopped(async () => {
      await service.database.execute(
        sql`UPDATE operations.network_pin SET restored_at_ms = ${at}::int8`,
      )
    })
  const { address } = makeBuyer()
  await restore(null)
  const giver = await createFundedBuyer(service, 2_000n)
  expectSold(await giver.buy(service, depositing(address, '2000')))
  const { buyer, spendElsewhere } = await makeDoubleSpender(service)
  await restore(service.world.now() + 10 ** 9)
  await before()
  const held = await buyer.buy(service, depositing(address, String(funds)))
  expect(held.body.code, held.text).toBe('PAYMENT_HELD')
  const readFree = () => readBalance(service, address)
  const reversed = { moved: '5000', lost: '0' }
  return {
    id: held.body.details.payment_id,
    ...{ readFree, free: 2_000n, freeWhileGone: 2_000n, spendElsewhere, reversed, endSeconds },
  }
}

/**
 * Two wallets of one payer pay in one transaction, by authorizations with the same nonce; one spends its money
 * elsewhere.
 */
async function payJointly({ service, before }: Begin): Promise<Paid> {
  const market = await openRows(service)
  const { buyer, spendElsewhere } = await makeDoubleSpender(service)
  const others = await Promise.all([1, 2].map(() => createFundedBuyer(service, funds)))
  const nonce = `0x${randomBytes(32).toString('hex')}`
  const asked = askFive(market)
  const sign = async (one: Buyer) =>
    one.payV2(await quote(service, asked), { authorization: { nonce } })
  const signed = await Promise.all([...others, buyer].map(sign))
  await before()
  const { payments } = service.running.service
  const buying = await service.database.transaction(async (tx) => {
    await tx.execute(sql`LOCK TABLE operations.transaction_journal IN EXCLUSIVE MODE`)
    const [first, ...rest] = signed
    const send = (one = {}) => ask(service, asked, { ...one, 'x-balance': 'off' })
    const begin = async (some: readonly (object | undefined)[], count: number) => {
      const sent = some.map(send)
      await expect.poll(() => payments.countInFlight(), { timeout: 20_000 }).toBe(count)
      await setTimeout(500)
      return sent
    }
    // The first goes alone; the others wait for it together.
    return { all: [...(await begin([first], 1)), ...(await begin(rest, 3))] }
  })
  const id = getId(expectSold((await Promise.all(buying.all)).at(-1) as TestReply))
  const [joint] = await service.database.query<{ parts: string[] }>(
    sql`SELECT parts FROM operations.transaction_journal WHERE parts @> ARRAY[${id}::text]`,
  )
  expect(joint?.parts.length).toBeGreaterThan(1)
  const readFree = () => readBalance(service, buyer.address)
  const reversed = { moved: '1000', lost: '4000' }
  return {
    id,
    ...{ readFree, free: 1_000n, freeWhileGone: 0n, spendElsewhere, reversed, endSeconds },
  }
}

const kinds = [
  ['a purchase by an authorization', payExact],
  ['a purchase by a transfer of the payer', payNative],
  ['a purchase by a permit', payUpto],
  ['a purchase that paid the seller’s own wallet', payDirect],
  ['a purchase in one transaction with others', payJointly],
  ['a deposit to a wallet', depositToWallet],
  ['a deposit to an application', depositToApplication],
  ['a deposit that is held after a restore', depositHeld],
] as const

/** Pays, and takes the block of the payment back. */
async function payInVain(service: TestService, make: (begin: Begin) => Promise<Paid>) {
  let since = 0n
  const before = async () => {
    since = await connectDevnet(service).getBlockNumber({ cacheTime: 0 })
  }
  const paid = await make({ service, before })
  const chain = connectDevnet(service)
  expect(await paid.readFree()).toBe(paid.free)
  await expectBacked(service)
  await takeBack(service, since)
  return { paid, chain }
}

/** Lists the payments whose money the service would move on from their quotes' addresses. */
async function listUnswept({ running, database }: TestService): Promise<string[]> {
  const networks = running.service.payments.ports.methods.map(({ network }) => network)
  const page = { networks, triesMax: 10, after: { at: -1n, id: '' }, limit: 1_000 }
  return (await listUnsweptClaims(database, page)).map(({ id }) => id)
}

async function expectGone(service: TestService, { id, readFree, freeWhileGone }: Paid) {
  await watchUntil(service, async () => (await readTakenBack(service, id)) === null)
  expect(await readFree()).toBe(freeWhileGone)
  expect(await readReversal(service, id)).toBeUndefined()
}

/** The ledger says that the chain has brought as much as is there, and no account has less than nothing. */
async function expectBacked(service: TestService): Promise<void> {
  await expectBalanced(service)
  const { devnet } = service.running
  const places = [devnet?.network.payTo ?? '', ...depositAddresses]
  const balances = await Promise.all(places.map((one) => readChainBalance(service, one)))
  const there = balances.reduce((sum, one) => sum + one, 0n)
  const booked = (await readAccounts(service)).get(`outside:${devnet?.network.id}`) ?? 0n
  expect(there).toBe(-booked)
}

describe.each(takeShare(kinds, 3))('%s that a reorganisation takes back', (_, make) => {
  withService(
    (service) => {
      test('P12: it is free again once it is back, and then it is as if nothing had been', async () => {
        const { paid, chain } = await payInVain(service(), make)
        await expectGone(service(), paid)
        await chain.setAutomine(true)
        await paid.sendAgain?.()
        await sendAgain(service())
        await watchUntil(
          service(),
          async () => (await readTakenBack(service(), paid.id)) === undefined,
        )
        expect(await paid.readFree()).toBe(paid.free)
        await chain.mine({ blocks: finalBlocks })
        service().world.passInterval(watchMs)
        expect(await readReversal(service(), paid.id)).toBeUndefined()
        await expectBacked(service())
        await expectAuditEqual(service())
      })

      test('P12: it is reversed once its payer has spent the money elsewhere and it can never come', async () => {
        const { paid, chain } = await payInVain(service(), make)
        await paid.spendElsewhere()
        await chain.mine({ blocks: 1 })
        await expectGone(service(), paid)
        await chain.setAutomine(true)
        await sendAgain(service())
        await expectGone(service(), paid)
        await passEnd(service(), paid.endSeconds)
        await awaitReversal(service(), paid.id)
        expect(await readReversal(service(), paid.id)).toMatchObject(paid.reversed)
        expect(await listUnswept(service())).not.toContain(paid.id)
        expect(await paid.readFree()).toBe(paid.free === paid.freeWhileGone ? paid.free : 0n)
        await expectBacked(service())
        await expectAuditEqual(service())
        await watchUntil(
          service(),
          async () => (await readTakenBack(service(), paid.id)) === undefined,
        )
      })
    },
    { devnet: true },
  )
})
