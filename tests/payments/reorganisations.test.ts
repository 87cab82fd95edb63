import { randomBytes } from 'node:crypto'
import type { Hex } from 'viem'
import { expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { TransferOrder } from '../../packages/server/src/services/payments/transfers/transfers.ts'
import { ask, depositing, list, makeBuyer, quote, readBalance } from '../support/buyer.ts'
import {
  expectBalanced,
  type Market,
  openMarket,
  readAccounts,
  readChainBalance,
  readEarnings,
} from '../support/market.ts'
import {
  awaitMined,
  blockTransfers,
  connectDevnet,
  createFundedPayer,
  findNativeEntry,
  makeProof,
} from '../support/payer.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import {
  expectAuditEqual,
  finalBlocks,
  passEnd,
  readReversal,
  readTakenBack,
  reorganize,
  sendAgain,
  takeBack,
  watchMs,
  watchUntil,
} from './reorganize.ts'

/** The time-out is for a slow day: each test waits for another process, an audit and many blocks. */
vi.setConfig({ testTimeout: 240_000 })

const sweeperMs = 60_000

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

async function listStates(service: TestService, id: string): Promise<string[]> {
  const rows = await service.database.query<{ state: string }>(
    sql`SELECT state FROM operations.transaction_journal WHERE id IN (${id}, ${`again:${id}`}) ORDER BY nonce`,
  )
  return rows.map(({ state }) => state)
}

const notGraz = { name: { ne: 'Graz' } }

/** A stranger makes the call of a transaction in a transaction of its own; returns its hash. */
async function repeatCall(
  service: TestService,
  transaction: string,
): Promise<() => Promise<string>> {
  const chain = connectDevnet(service)
  const { input: data, to } = await chain.getTransaction({ hash: transaction as Hex })
  return async () => {
    const { address } = makeBuyer().account
    await chain.setBalance({ address, value: 10n ** 20n })
    await chain.impersonateAccount({ address })
    // It comes before all that wait.
    const fees = { maxPriorityFeePerGas: '0xba43b7400', maxFeePerGas: '0x9184e72a000' }
    const sent = { from: address, to, gas: '0xf4240', data, ...fees }
    const request = { method: 'eth_sendTransaction' as never, params: [sent] as never }
    const hash = String(await chain.request(request))
    await chain.mine({ blocks: 1 })
    const { status, transactionHash } = await awaitMined(chain, hash)
    expect(status).toBe('success')
    return transactionHash
  }
}

/** A wallet deposits 5000 and withdraws 2000 of them, which the chain has since a block. */
async function withdraw(service: TestService) {
  const chain = connectDevnet(service)
  const buyer = makeBuyer()
  await createFundedPayer(service, 5_000n, buyer.account)
  const paid = await buyer.buy(service, depositing(buyer.address, '5000'))
  expect(paid.status, paid.text).toBe(200)
  await chain.mine({ blocks: finalBlocks })
  const { transfers } = service.running.service
  const order: TransferOrder = {
    ...{
      id: `wd_${randomBytes(16).toString('hex')}`,
      kind: 'withdrawal',
      account: `wallet:${buyer.address}`,
    },
    ...{ network: 'eip155:84532', recipient: buyer.address, amount: 2_000n },
  }
  const since = await chain.getBlockNumber({ cacheTime: 0 })
  await transfers.request(order)
  const { transaction } = await watchUntil(service, async () => {
    const found = await transfers.find(order.id)
    return found?.state === 'paid' && found
  })
  return { chain, buyer, transfers, id: order.id, since, transaction }
}

/** A payment of 5000, or a withdrawal of 2000, with the transaction that is booked. */
const moves = {
  'a payment': async (service: TestService) => {
    const market = await openMarket(service, { price: { per_row: '1000' } })
    const buyer = makeBuyer()
    await createFundedPayer(service, 5_000n, buyer.account)
    const since = await connectDevnet(service).getBlockNumber({ cacheTime: 0 })
    const sold = await buyer.buy(service, list({ root: market.root, limit: 5, find: notGraz }))
    const id = sold.headers.get('x-payment-id') ?? ''
    const { body } = await service.request('GET', `/api/payments/${id}`)
    const expectBooks = async () => {
      expect(await readBalance(service, buyer.address)).toBe(1_000n)
      expect(await readChainBalance(service, buyer.address)).toBe(0n)
    }
    return { id, transaction: String(body.transaction), since, expectBooks }
  },
  'a withdrawal': async (service: TestService) => {
    const { buyer, id, since, transaction } = await withdraw(service)
    const expectBooks = async () => {
      expect(await service.running.service.transfers.find(id)).toMatchObject({ state: 'paid' })
      expect(await readBalance(service, buyer.address)).toBe(3_000n)
      expect(await readChainBalance(service, buyer.address)).toBe(2_000n)
    }
    return { id, transaction: String(transaction), since, expectBooks }
  },
}

withService(
  (service) => {
    test.each(['a payment', 'a withdrawal'] as const)(
      'P12: %s that a stranger brings back by a transaction of its own is moved once, and the audit knows by which',
      async (kind) => {
        const { id, transaction, since, expectBooks } = await moves[kind](service())
        const chain = connectDevnet(service())
        const bring = await repeatCall(service(), transaction)
        await takeBack(service(), since)
        // The service sends its own transaction again, which would be back before anybody saw that it was gone.
        const { gasLimit } = await chain.getBlock()
        await chain.setBlockGasLimit({ gasLimit: 21_000n })
        await watchUntil(service(), async () => (await readTakenBack(service(), id)) === null)
        await chain.setBlockGasLimit({ gasLimit })
        const brought = await bring()
        await chain.setAutomine(true)
        await sendAgain(service())
        await watchUntil(service(), async () => (await readTakenBack(service(), id)) === brought)
        const name = kind === 'a payment' ? id : `transfer:${id}`
        await watchUntil(
          service(),
          async () => (await listStates(service(), name))[0] === 'reverted',
        )
        await expectBooks()
        await expectAuditEqual(service())
        // The next process knows it, too, and holds nothing.
        await watchUntil(service(), async () => (await readTakenBack(service(), id)) === brought)
        await chain.mine({ blocks: finalBlocks })
        service().world.passInterval(watchMs)
        expect(await readReversal(service(), id)).toBeUndefined()
        await expectBooks()
        await expectAuditEqual(service())
      },
    )

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

    test('P12: a sweep that a reorganisation puts before the transfer whose money it moves is made anew', async () => {
      const chain = connectDevnet(service())
      const market = await openMarket(service(), { price: { per_row: '1000' } })
      const payer = await createFundedPayer(service(), 5_000n)
      const asked = list({ root: market.root, limit: 5, find: notGraz })
      const { payTo: address, extra } = findNativeEntry(await quote(service(), asked))
      const since = await chain.getBlockNumber({ cacheTime: 0 })
      const hash = await payer.transfer({ to: address, value: 5_000n })
      const sold = await ask(service(), asked, makeProof(extra.quoteId, hash))
      expect(sold.status, sold.text).toBe(200)
      const raw = { method: 'eth_getRawTransactionByHash' as never, params: [hash] as never }
      const serializedTransaction = (await chain.request(raw)) as Hex
      const id = sold.headers.get('x-payment-id') ?? ''
      const sweepUntil = (see: () => Promise<boolean>) =>
        watchUntil(service(), () => {
          service().world.passInterval(sweeperMs)
          return see()
        })
      const readSum = () => readChainBalance(service(), address)
      const isSwept = async () => (await readSum()) === 0n
      await sweepUntil(isSwept)
      await takeBack(service(), since)
      await chain.dropTransaction({ hash: hash as Hex })
      await sendAgain(service())
      await sweepUntil(async () =>
        (await listStates(service(), `sweep:${id}`)).includes('reverted'),
      )
      await chain.setAutomine(true)
      await chain.sendRawTransaction({ serializedTransaction })
      await awaitMined(chain, hash)
      expect(await readSum()).toBe(5_000n)
      await sweepUntil(isSwept)
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

    test('P12: a withdrawal whose process died once it was booked is paid as the ledger has it, though its chain took it back meanwhile', async () => {
      const { chain, buyer, transfers, id, since, transaction } = await withdraw(service())
      await takeBack(service(), since)
      // A dying process leaves it so.
      await service().database.execute(sql`
        UPDATE operations.outgoing_transfer SET state = 'sent', transaction = NULL WHERE id = ${id}`)
      await watchUntil(service(), async () => (await transfers.find(id))?.state === 'paid')
      expect(await transfers.find(id)).toMatchObject({ transaction })
      await chain.setAutomine(true)
      await sendAgain(service())
      await watchUntil(service(), async () => (await readTakenBack(service(), id)) === undefined)
      expect(await readChainBalance(service(), buyer.address)).toBe(2_000n)
      await expectAuditEqual(service())
    })

    test('P12: a withdrawal that was paid, and that its chain can never have any more, is on its account again', async () => {
      const { chain, buyer, transfers, id, since } = await withdraw(service())
      // No block takes it before its end.
      const unblock = await blockTransfers(service(), buyer.address)
      await takeBack(service(), since)
      service().world.advance(26 * 3_600_000)
      await chain.increaseTime({ seconds: 26 * 3_600 })
      await chain.setAutomine(true)
      await watchUntil(service(), async () => {
        await chain.mine({ blocks: finalBlocks })
        return readReversal(service(), id)
      })
      await unblock()
      expect(await transfers.find(id)).toMatchObject({ state: 'returned', transaction: null })
      expect(await readBalance(service(), buyer.address)).toBe(5_000n)
      expect(await readChainBalance(service(), buyer.address)).toBe(0n)
      await expectAuditEqual(service())
    })
  },
  { devnet: true },
)

withService(
  (service) => {
    const refund = async ({ appId, headers }: Market, payment: string) => {
      const path = `/api/apps/${appId}/sales/${payment}/refund`
      const body = { amount: '1000' }
      const reply = await service().request('POST', path, { headers, body })
      return [reply.status, reply.body.code, reply.body.error]
    }

    test('P12: a payment that a reorganisation took back for good is reversed: what is left of it is taken back, the rest is the operator’s loss', async () => {
      const { market, buyer, id, chain } = await buyAndSpendTwice(service())
      // It buys nothing while the chain does not have it.
      await watchUntil(service(), async () => (await readBalance(service(), buyer.address)) === 0n)
      expect(await readReversal(service(), id)).toBeUndefined()
      const gone = expect.stringContaining('does not have the payment')
      expect(await refund(market, id)).toEqual([409, 'CONFLICT', gone])
      await passEnd(service())
      await watchUntil(service(), async () => {
        await chain.mine({ blocks: finalBlocks })
        return readReversal(service(), id)
      })
      expect(await readReversal(service(), id)).toMatchObject({ moved: '1000', lost: '4000' })
      // Its money would be the seller's own: nobody has paid.
      const reversed = expect.stringContaining('was reversed')
      expect(await refund(market, id)).toEqual([409, 'CONFLICT', reversed])
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
