import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isRecord } from '../base/is-record.ts'
import { noLog as log } from '../base/log.ts'
import { realWorld, type World } from '../base/world.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { type Devnet, startDevnet } from '../devnet/devnet.ts'
import { readBalance } from './authorization-use.ts'
import { findTransactionReceipt, readHead } from './evm-chain.ts'
import { makeEvmFacilitator } from './evm-facilitator.ts'
import { Failures } from './failures.ts'
import { encodeHex, encodeQuantity } from './hex.ts'
import { AnswerTooLarge } from './http-json.ts'
import { buildJointColumns, buildReplacementColumns, makeJournalTables } from './journal.ts'
import { makePaymentsUnderWay } from './payments-under-way.ts'
import type { Requirement, SignedPayment } from './protocol.ts'
import { openRpc, type Rpc, RpcError, toUnreachable } from './rpc.ts'
import { JournaledSender } from './sender.ts'
import { deriveAddress, digestTransfer, signDigest } from './signature.ts'
import { encodeTransferCall } from './token.ts'
import { makeTreasury, type TransferOrder } from './treasury.ts'
import { formatPermitNonce, type UptoPayment } from './upto/upto.ts'
import { makeUptoFacilitator } from './upto/upto-facilitator.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-ended-'))
const hourMs = 3_600_000
const payer = realWorld.randomBytes(32)
let devnet: Devnet
let store: TestDatabase
let rpc: Rpc
let sender: JournaledSender
/** The clock of the service beside the real one. */
let aheadMs = 0
const world: World = { ...realWorld, now: () => realWorld.now() + aheadMs }

beforeAll(async () => {
  store = await createTestDatabase()
  await store.database.execute(sql`CREATE SCHEMA operations`)
  for (const table of [
    ...makeJournalTables(),
    ...buildReplacementColumns(),
    ...buildJointColumns(),
  ])
    await store.database.execute(table)
  devnet = await startDevnet({ dataDir: folder, world: realWorld, log })
  rpc = openRpc({ url: devnet.rpcUrl, world: realWorld })
  const { network, keys } = devnet
  const { database } = store
  sender = new JournaledSender({ database, rpc, world: realWorld, network, key: keys.gas, log })
  await sender.start()
  await devnet.faucet(deriveAddress(payer), 1_000n)
  await devnet.faucet(network.payTo, 1_000n)
})

afterAll(async () => {
  await sender?.stop()
  rpc?.close()
  await devnet?.stop()
  await store?.drop()
  rmSync(folder, { recursive: true, force: true })
})

/**
 * Two nodes behind one address: one tells of the newest block, a day ahead of what a payment allows, and the other one
 * stands still at a height. It has the receipts of nothing, and has seen nothing used; asked for a block that it does not
 * have it says so.
 */
function makePair(stillAt: bigint): Rpc {
  return {
    ...rpc,
    call: async (method, params) => {
      if (method === 'eth_getTransactionReceipt') return null
      if (method === 'eth_getLogs') return []
      if (method === 'eth_call') {
        const isAhead = params[1] !== 'latest' && BigInt(String(params[1])) > stillAt
        if (isAhead) throw new RpcError({ code: -32000, message: 'header not found' })
        return `0x${'0'.repeat(64)}`
      }
      const answer = await rpc.call(method, params)
      const isNewest = method === 'eth_getBlockByNumber' && params[0] === 'latest'
      if (!isNewest || !isRecord(answer)) return answer
      return { ...answer, timestamp: encodeQuantity(BigInt(String(answer.timestamp)) + 86_400n) }
    },
  }
}

const makeFacilitator = (by: Rpc) =>
  makeEvmFacilitator({ rpc: by, network: devnet.network, sender, world, log, pollMs: 4 })

const makeId = () => `ended:${encodeHex(realWorld.randomBytes(8))}`
const getSeconds = () => BigInt(Math.floor(realWorld.now() / 1000))

function signPayment(amount: bigint, lifeSeconds = 300n): [SignedPayment, Requirement] {
  const { network } = devnet
  const fields = {
    ...{ from: deriveAddress(payer), to: network.payTo, value: amount },
    ...{ validAfter: 0n, validBefore: getSeconds() + lifeSeconds },
    nonce: encodeHex(realWorld.randomBytes(32)),
  }
  const signature = signDigest(digestTransfer(network, fields), payer)
  return [
    {
      ...{ version: 1, network: network.id, scheme: 'exact', receiptForm: 'base64' },
      payload: { ...fields, signature },
    },
    {
      ...{ network, amount, quoteId: 'q1.test', maxTimeoutSeconds: 60 },
      expiresAt: Number(getSeconds()) + 300,
    },
  ]
}

/** The node, as it is where a transaction and its block have more events than are ever read. */
function crowd(by: Rpc, transaction: string): Rpc {
  return {
    ...by,
    call: async (method, params, options) => {
      const isOfBlock = isRecord(params[0]) && params[0].blockHash !== undefined
      const isReceipt = method === 'eth_getTransactionReceipt' && params[0] === transaction
      if (isReceipt || (method === 'eth_getLogs' && isOfBlock))
        throw toUnreachable(new AnswerTooLarge('too large'))
      return by.call(method, params, options)
    },
  }
}

/** Lets the clock be so far ahead while something is done. */
async function later<T>(ms: number, work: () => Promise<T>): Promise<T> {
  aheadMs += ms
  try {
    return await work()
  } finally {
    aheadMs -= ms
  }
}

describe('a payment whose end is told by one node, and its use by another one that stands still before it', () => {
  test('is not over, though the service does not know its transaction', async () => {
    const stillAt = await readHead(rpc)
    const [payment, requirement] = signPayment(7n)
    const made = await makeFacilitator(rpc).settle(makeId(), payment, requirement)
    expect(made).toMatchObject({ state: 'settled' })
    const outcome = await later(hourMs, () =>
      makeFacilitator(makePair(stillAt)).lookup(makeId(), payment, requirement),
    )
    expect(outcome).toMatchObject({ state: 'pending', reason: 'network_unreachable' })
  })

  test('is not over by a permit, either', async () => {
    const stillAt = await readHead(rpc)
    const { network } = devnet
    const [{ payload, ...about }] = signPayment(9n)
    const payment: UptoPayment = {
      ...about,
      payload: { ...payload, nonce: formatPermitNonce(5n) },
      upto: { permitted: 9n, facilitator: sender.address },
    }
    const makeUpto = (by: Rpc) => {
      const parts = { rpc: by, network, sender, world, log, pollMs: 4, confirmations: 1 }
      const underWay = makePaymentsUnderWay({ ...parts, waitMs: 1_000 })
      return makeUptoFacilitator({ ...parts, underWay, failures: new Failures(parts) })
    }
    const requirement = signPayment(9n)[1]
    await later(hourMs, async () => {
      const pair = makeUpto(makePair(stillAt - 1n))
      await expect(pair.lookup(makeId(), payment, requirement)).rejects.toMatchObject({
        code: 'PAYMENT_NETWORK_UNREACHABLE',
      })
    })
  })
})

describe('a transfer of ours past its end', () => {
  const open = (by: Rpc) => {
    const { network, keys } = devnet
    const facilitator = makeFacilitator(by)
    return makeTreasury({ network, facilitator, rpc: by, world, key: keys.treasury })
  }
  const makeOrder = (validBefore: bigint): TransferOrder => ({
    ...{ id: makeId(), to: deriveAddress(realWorld.randomBytes(32)), amount: 5n, validBefore },
  })
  const begin = async () => true

  test('that the chain has made is not given back by the word of a node that stands still before it', async () => {
    const stillAt = await readHead(rpc)
    const order = makeOrder(getSeconds() + 3_000n)
    expect(await open(rpc).transfer(order, 0, begin)).toMatchObject({ state: 'settled' })
    const pair = open(makePair(stillAt))
    for (const ms of [hourMs, hourMs + 120_000]) {
      const outcome = await later(ms, () => pair.transfer(order, 1, begin))
      expect(outcome).toMatchObject({ state: 'pending' })
    }
  })

  test('that somebody handed to the token among more events than are ever read is made, and is not given back', async () => {
    const order = makeOrder(getSeconds() + 3_000n)
    const made = await open(rpc).transfer(order, 0, begin)
    if (made.state !== 'settled') throw new Error('it is made')
    // Its newest block must be past the order's end.
    await rpc.call('evm_increaseTime', [7_200])
    await rpc.call('anvil_mine', [encodeQuantity(80n)])
    const treasury = open(crowd(rpc, made.transaction))
    for (const ms of [0, 2 * hourMs, 2 * hourMs + 120_000])
      expect(await later(ms, () => treasury.transfer(order, 1, begin))).toEqual({
        ...{ state: 'settled', transaction: made.transaction },
      })
  })

  test('is given back once a second look agrees, a minute later, and the block of the first one is final', async () => {
    const order = makeOrder(getSeconds() - 1_200n)
    const treasury = open(rpc)
    const failed = { state: 'failed', reason: 'expired' }
    const look = () => treasury.transfer(order, 0, begin)
    await rpc.call('evm_mine', [])
    expect(await look()).toEqual({ ...failed, final: false })
    expect(await later(120_000, look)).toEqual({ ...failed, final: false })
    await rpc.call('anvil_mine', [encodeQuantity(80n)])
    expect(await look()).toEqual({ ...failed, final: false })
    expect(await later(30_000, look)).toEqual({ ...failed, final: false })
    expect(await later(120_000, look)).toEqual({ ...failed, final: true })
  })
})

describe('a payment that a stranger handed to the token among more events than are ever read', () => {
  test('is pending and never failed, while it lives and past its end, and holds up nothing of its payer', async () => {
    const { network } = devnet
    const [payment, requirement] = signPayment(5n, 20_000n)
    const { payload } = payment
    const call = { to: network.asset.address, data: encodeTransferCall(payload) }
    const from = deriveAddress(realWorld.randomBytes(32))
    await rpc.call('anvil_setBalance', [from, encodeQuantity(10n ** 20n)])
    await rpc.call('anvil_impersonateAccount', [from])
    const transaction = String(await rpc.call('eth_sendTransaction', [{ ...call, from }]))
    await expect.poll(() => findTransactionReceipt(rpc, transaction)).toBeDefined()
    const parts = { network, rpc: crowd(rpc, transaction), world, pollMs: 4 }
    const underWay = makePaymentsUnderWay({ ...parts, waitMs: 100 })
    const failures = new Failures(parts)
    const facilitator = makeEvmFacilitator({ ...parts, sender, log, underWay, failures })
    const id = makeId()
    const reason = 'its transaction has too many events to be looked at'
    const pending = { state: 'pending', transaction, reason, usedIn: transaction }
    for (let round = 0; round < 4; round++)
      expect(await facilitator.settle(makeId(), payment, requirement)).toEqual(pending)
    expect(await facilitator.settle(id, payment, requirement)).toEqual(pending)
    // Ours were reverted, which is no failure of its payer, and none of the payer's waits for it.
    expect(failures.isOver(payload.from)).toBe(false)
    const balance = await readBalance(rpc, network, payload.from)
    expect(await underWay.enter({ ...payload, nonce: 'other', value: balance })).toBe('entered')
    await rpc.call('evm_increaseTime', [30_000])
    await rpc.call('evm_mine', [])
    await later(10 * hourMs, async () => {
      expect(await facilitator.lookup(id, payment, requirement)).toEqual(pending)
      expect(await facilitator.findUse(payment, requirement)).toEqual(pending)
    })
  })
})
