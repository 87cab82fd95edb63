import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import type { TransferOrder } from '../../packages/server/src/services/payments/transfers/transfers.ts'
import { depositing, list, makeBuyer, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  openMarket,
  readAccounts,
  readChainBalance,
  readEarnings,
} from '../support/market.ts'
import { blockTransfers, connectDevnet, createFundedPayer } from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'

const watchMs = 15_000
const finalBlocks = 70

/** Blocks since a height are taken back, and as many empty ones are there in their place. */
async function reorganize(service: TestService, since: bigint): Promise<void> {
  const chain = connectDevnet(service)
  const depth = Number((await chain.getBlockNumber({ cacheTime: 0 })) - since)
  await chain.request({ method: 'anvil_reorg' as never, params: [depth, []] as never })
}

/** Lets the watch look until it has seen what is asked for. */
async function watchUntil<T>(
  service: TestService,
  see: () => Promise<T | undefined | false>,
): Promise<T> {
  for (let tries = 0; tries < 200; tries++) {
    service.world.passInterval(watchMs)
    await new Promise((resolve) => setTimeout(resolve, 50))
    const seen = await see()
    if (seen !== undefined && seen !== false) return seen
  }
  throw new Error('the watch did not come to it')
}

const readReversal = async (service: TestService, id: string) => {
  const { chain } = service.running.service.tenants.system
  await chain.whenApplied(chain.head().height)
  const [row] = await service.database.query<{ moved: string; lost: string; reason: string }>(
    sql`SELECT moved::text AS moved, lost::text AS lost, reason FROM system.reversal WHERE payment_id = ${id}`,
  )
  return row
}

async function expectAuditEqual(service: TestService): Promise<void> {
  const report = await service.whileStopped((config) => audit(config, () => undefined))
  expect(report.equal, JSON.stringify(report)).toBe(true)
}

/** All blocks until now become final, long after every authorization has ended. */
async function passEnd(service: TestService): Promise<void> {
  const chain = connectDevnet(service)
  service.world.advance(1_000_000)
  await chain.increaseTime({ seconds: 1_000 })
  await chain.mine({ blocks: finalBlocks })
}

/** Buys four rows for the price of five, and moves the money elsewhere in place of the payment's block. */
async function buyAndSpendTwice(service: TestService) {
  const chain = connectDevnet(service)
  const market = await openMarket(service, { price: { per_row: '1000' } })
  const buyer = makeBuyer()
  const payer = await createFundedPayer(service, 5_000n, buyer.account)
  const before = await chain.getBlockNumber({ cacheTime: 0 })
  const sold = await buyer.buy(service, list({ root: market.root, limit: 5, find: notGraz }))
  expect(sold.status, sold.text).toBe(200)
  expect(await readBalance(service, buyer.address)).toBe(1_000n)
  const other = await payer.sign({ to: `0x${'9'.repeat(40)}`, value: 5_000n })
  await chain.setAutomine(false)
  await reorganize(service, before)
  await other.send()
  await chain.mine({ blocks: 1 })
  await chain.setAutomine(true)
  const id = sold.headers.get('x-payment-id') ?? ''
  return { market, buyer, id, chain }
}

/** The journal sends the same bytes again; the node may have them, and mines them with the next block. */
async function sendAgain(service: TestService): Promise<void> {
  service.world.advance(11_000)
  service.world.passInterval(10_000)
  await new Promise((resolve) => setTimeout(resolve, 300))
  await connectDevnet(service).mine({ blocks: 1 })
  service.world.passInterval(10_000)
}

async function listStates(service: TestService, id: string): Promise<string[]> {
  const rows = await service.database.query<{ state: string }>(
    sql`SELECT state FROM operations.transaction_journal WHERE id IN (${id}, ${`again:${id}`}) ORDER BY nonce`,
  )
  return rows.map(({ state }) => state)
}

const notGraz = { name: { ne: 'Graz' } }

withService(
  (service) => {
    test('P12: a payment that a reorganisation took back is sent again, and its money is free once it is there', async () => {
      const chain = connectDevnet(service())
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const buyer = makeBuyer()
      await createFundedPayer(service(), 5_000n, buyer.account)
      const before = await chain.getBlockNumber({ cacheTime: 0 })
      const sold = await buyer.buy(service(), list({ root: market.root, limit: 5, find: notGraz }))
      const id = sold.headers.get('x-payment-id') ?? ''
      await chain.setAutomine(false)
      await reorganize(service(), before)
      await watchUntil(service(), async () => (await readBalance(service(), buyer.address)) === 0n)
      await chain.setAutomine(true)
      await sendAgain(service())
      await watchUntil(
        service(),
        async () => (await readBalance(service(), buyer.address)) === 1_000n,
      )
      await chain.mine({ blocks: finalBlocks })
      service().world.passInterval(watchMs)
      expect(await readReversal(service(), id)).toBeUndefined()
      expect(await readChainBalance(service(), buyer.address)).toBe(0n)
      await expectAuditEqual(service())
    })

    test('P12: an authorization that still stands is sent once more, after its transaction came back and was reverted', async () => {
      const { buyer, id, chain } = await buyAndSpendTwice(service())
      await watchUntil(service(), async () => (await readBalance(service(), buyer.address)) === 0n)
      await sendAgain(service())
      await watchUntil(service(), async () => (await listStates(service(), id))[0] === 'reverted')
      await service().request('POST', '/devnet/faucet', {
        body: { address: buyer.address, amount: '5000' },
      })
      await watchUntil(
        service(),
        async () => (await readBalance(service(), buyer.address)) === 1_000n,
      )
      expect(await listStates(service(), id)).toHaveLength(2)
      expect(await readChainBalance(service(), buyer.address)).toBe(0n)
      await chain.mine({ blocks: finalBlocks })
      service().world.passInterval(watchMs)
      expect(await readReversal(service(), id)).toBeUndefined()
      await expectAuditEqual(service())
    })

    test('P12: a withdrawal that was paid, and that its chain can never have any more, is on its account again', async () => {
      const chain = connectDevnet(service())
      const buyer = makeBuyer()
      await createFundedPayer(service(), 5_000n, buyer.account)
      const paid = await buyer.buy(service(), depositing(buyer.address, '5000'))
      expect(paid.status, paid.text).toBe(200)
      await chain.mine({ blocks: finalBlocks })
      const { transfers } = service().running.service
      const order: TransferOrder = {
        ...{ id: `wd_${'a1'.repeat(16)}`, kind: 'withdrawal', account: `wallet:${buyer.address}` },
        ...{ network: 'eip155:84532', recipient: buyer.address, amount: 2_000n },
      }
      const before = await chain.getBlockNumber({ cacheTime: 0 })
      await transfers.request(order)
      await watchUntil(service(), async () => (await transfers.find(order.id))?.state === 'paid')
      // No block takes it before its end.
      const unblock = await blockTransfers(service(), buyer.address)
      await chain.setAutomine(false)
      await reorganize(service(), before)
      service().world.advance(26 * 3_600_000)
      await chain.increaseTime({ seconds: 26 * 3_600 })
      await chain.setAutomine(true)
      await watchUntil(service(), async () => {
        await chain.mine({ blocks: finalBlocks })
        return readReversal(service(), order.id)
      })
      await unblock()
      expect(await transfers.find(order.id)).toMatchObject({ state: 'returned', transaction: null })
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      expect(await readChainBalance(service(), buyer.address)).toBe(0n)
      await expectAuditEqual(service())
    })
  },
  { devnet: true },
)

withService(
  (service) => {
    test('P12: a payment that a reorganisation took back for good is reversed: what is left of it is taken back, the rest is the operator’s loss', async () => {
      const { market, buyer, id, chain } = await buyAndSpendTwice(service())
      // It buys nothing while the chain does not have it.
      await watchUntil(service(), async () => (await readBalance(service(), buyer.address)) === 0n)
      expect(await readReversal(service(), id)).toBeUndefined()
      await passEnd(service())
      await watchUntil(service(), async () => {
        await chain.mine({ blocks: finalBlocks })
        return readReversal(service(), id)
      })
      expect(await readReversal(service(), id)).toMatchObject({ moved: '1000', lost: '4000' })
      const accounts = await readAccounts(service())
      expect(accounts.get('losses')).toBe(-4_000n)
      expect(accounts.get(`wallet:${buyer.address}`)).toBe(0n)
      expect(await readEarnings(service(), market)).toBe(3_200n)
      await expectBalanced(service())
      const headers = service().operator
      const platform = await service().request('GET', '/api/platform/wallet', { headers })
      expect(platform.body).toMatchObject({ available: '800', losses: '4000' })
      const payment = await service().request('GET', `/api/payments/${id}`)
      expect(payment.body).toMatchObject({ state: 'reversed', reason: 'expired' })
      const one = await service().request('GET', `/api/transactions/${id}`)
      expect(one.body).toMatchObject({
        status: 'reversed',
        error: expect.stringContaining('4000 atomic units ($0.004)'),
      })
      const path = `/api/apps/${market.appId}/transactions`
      const listed = await service().request('GET', path, { headers: market.headers })
      expect(listed.body.transactions[0]).toMatchObject({ id, status: 'reversed' })
      const entries = await service().request('GET', `/api/wallets/${buyer.address}/entries`)
      expect(entries.status, entries.text).not.toBe(500)
      await expectAuditEqual(service())
    })
  },
  { devnet: true },
)
