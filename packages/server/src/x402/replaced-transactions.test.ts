import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { noLog as log } from '../base/log.ts'
import { realWorld, type World } from '../base/world.ts'
import { sql } from '../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../database/testing.ts'
import { type Devnet, startDevnet } from '../devnet/devnet.ts'
import { findTransactionReceipt, readTransactionCount } from './evm-chain.ts'
import { makeEvmFacilitator } from './evm-facilitator.ts'
import { computeHigherOffer, computeOffer } from './fees.ts'
import { encodeHex, encodeQuantity } from './hex.ts'
import {
  buildJointColumns,
  buildReplacementColumns,
  type Journaled,
  listHashes,
  makeJournalTables,
} from './journal.ts'
import type { Requirement, SignedPayment } from './protocol.ts'
import { openRpc, type Rpc, RpcError } from './rpc.ts'
import { JournaledSender, type MayLeave } from './sender.ts'
import { deriveAddress, digestTransfer, signDigest } from './signature.ts'
import { parseTransaction, signTransaction } from './transaction.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollbase-replaced-'))
const gwei = 10n ** 9n
let devnet: Devnet
let store: TestDatabase
let rpc: Rpc
let now = realWorld.now()
/** Time passes where a test says so. */
const world: World = { ...realWorld, now: () => now, every: () => () => undefined }
const replaceAfterMs = 30_000
const payer = realWorld.randomBytes(32)
/** The devnet mines what waits; held, it mines where a test says so. */
let release = () => {}

beforeAll(async () => {
  store = await createTestDatabase()
  await store.database.execute(sql`CREATE SCHEMA operations`)
  for (const table of [
    ...makeJournalTables(),
    ...buildReplacementColumns(),
    ...buildJointColumns(),
  ])
    await store.database.execute(table)
  let held: Promise<void> | undefined
  let park = () => {}
  const sleep = async (ms: number) => {
    await realWorld.sleep(ms)
    if (held !== undefined) park()
    await held
  }
  devnet = await startDevnet({ dataDir: folder, world: { ...realWorld, sleep }, log })
  rpc = openRpc({ url: devnet.rpcUrl, world: realWorld })
  await devnet.faucet(deriveAddress(payer), 1_000n)
  await new Promise<void>((resolve) => {
    park = resolve
    held = new Promise((free) => {
      release = free
    })
  })
})

afterAll(async () => {
  release()
  rpc?.close()
  await devnet?.stop()
  await store?.drop()
  rmSync(folder, { recursive: true, force: true })
})

beforeEach(async () => {
  await rpc.call('evm_setAutomine', [false])
  await setBaseFee(gwei)
  await mine()
})

const setBaseFee = (wei: bigint) =>
  rpc.call('anvil_setNextBlockBaseFeePerGas', [encodeQuantity(wei)])
const mine = () => rpc.call('evm_mine', [])

type Made = {
  by?: Rpc
  in?: World
  feeMax?: bigint
  key?: Buffer
  mayLeave?: MayLeave
  adopts?: (id: string) => boolean
}

async function startSender(options: Made = {}): Promise<JournaledSender> {
  const key = options.key ?? realWorld.randomBytes(32)
  await rpc.call('anvil_setBalance', [deriveAddress(key), encodeQuantity(10n ** 22n)])
  const sender = new JournaledSender({
    ...{ database: store.database, rpc: options.by ?? rpc, world: options.in ?? world, log, key },
    ...{
      network: devnet.network,
      leaseMs: 10 ** 9,
      feeMax: options.feeMax,
      replaceAfterMs,
    },
    ...(options.adopts && { adopts: options.adopts }),
  })
  await sender.start(options.mayLeave)
  return sender
}

let sent = 0
const call = () => {
  sent += 1
  return { id: `test:${sent}`, to: `0x${'11'.repeat(20)}`, data: '0x', gas: 30_000n }
}

/** Lets the sender see what waits, and looks again after the time. */
async function resumeAfter(sender: JournaledSender, ms: number): Promise<void> {
  await sender.resume(0)
  now += ms
  await sender.resume(0)
}

async function require(sender: JournaledSender, id: string): Promise<Journaled> {
  const found = await sender.find(id)
  if (found === undefined) throw new Error(`${id} is not in the journal`)
  return found
}

const isInBlock = async (hash: string) => (await findTransactionReceipt(rpc, hash)) !== undefined

describe('a transaction that no block takes', () => {
  test('it is sent again with the same nonce and higher fees once the base fee has left it behind', async () => {
    const sender = await startSender()
    const { id } = await sender.send(call())
    const first = await require(sender, id)
    await setBaseFee(100n * gwei)
    await mine()
    expect(await isInBlock(first.hash)).toBe(false)
    await resumeAfter(sender, replaceAfterMs - 1)
    expect((await require(sender, id)).hash).toBe(first.hash)
    now += 6_000
    await sender.resume(0)
    const second = await require(sender, id)
    expect(listHashes(second)).toEqual([second.hash, first.hash])
    const [before, after] = [parseTransaction(first.raw), parseTransaction(second.raw)]
    expect(after).toEqual({
      ...before,
      maxFeePerGas: after.maxFeePerGas,
      maxPriorityFeePerGas: after.maxPriorityFeePerGas,
    })
    expect(after.maxFeePerGas * 10n).toBeGreaterThanOrEqual(before.maxFeePerGas * 11n)
    expect(after.maxPriorityFeePerGas * 10n).toBeGreaterThanOrEqual(
      before.maxPriorityFeePerGas * 11n,
    )
    await mine()
    expect([await isInBlock(first.hash), await isInBlock(second.hash)]).toEqual([false, true])
    await sender.resume(0)
    expect((await require(sender, id)).state).toBe('mined')
    expect(await readTransactionCount(rpc, sender.address)).toBe(1n)
    await sender.stop()
  })

  test('it gets through a node that takes no low tip, and those behind it follow', async () => {
    const tipMin = 2n * gwei
    // As nodes do: a transaction below the minimum of their pool is refused.
    const strict: Rpc = {
      ...rpc,
      call: async (method, params) => {
        const isLow =
          method === 'eth_sendRawTransaction' &&
          parseTransaction(Buffer.from(String(params[0]).slice(2), 'hex')).maxPriorityFeePerGas <
            tipMin
        if (isLow) throw new RpcError({ code: -32000, message: 'transaction underpriced' })
        return rpc.call(method, params)
      },
    }
    const sender = await startSender({ by: strict })
    const rows = await Promise.all([sender.send(call()), sender.send(call())])
    let rounds = 0
    for (; rounds < 12 && (await readTransactionCount(rpc, sender.address)) < 2n; rounds++) {
      await resumeAfter(sender, replaceAfterMs * 2 ** rounds)
      await mine()
    }
    expect(await readTransactionCount(rpc, sender.address)).toBe(2n)
    await sender.resume(0)
    for (const { id } of rows) expect((await require(sender, id)).state).toBe('mined')
    await sender.stop()
  })

  test('it is replaced nine times at most, each after twice the time, and is broadcast for ever', async () => {
    let broadcasts = 0
    const lost: Rpc = {
      ...rpc,
      call: async (method, params) => {
        if (method !== 'eth_sendRawTransaction') return rpc.call(method, params)
        broadcasts += 1
        return `0x${'00'.repeat(32)}`
      },
    }
    const sender = await startSender({ by: lost })
    const { id } = await sender.send(call())
    for (let round = 0; round < 9; round++) {
      await resumeAfter(sender, replaceAfterMs * 2 ** round - 1)
      expect((await require(sender, id)).replacedAtMs).toHaveLength(round)
      now += 1
      await sender.resume(0)
      expect((await require(sender, id)).replacedAtMs).toHaveLength(round + 1)
    }
    const before = broadcasts
    await resumeAfter(sender, replaceAfterMs * 2 ** 12)
    expect((await require(sender, id)).replacedAtMs).toHaveLength(9)
    expect(broadcasts).toBe(before + 2)
    await sender.stop()
  })

  test('no replacement pays more for a unit of gas than the most that is paid', async () => {
    const sender = await startSender({ feeMax: 2n * gwei })
    const { id, hash } = await sender.send(call())
    await setBaseFee(50n * gwei)
    await mine()
    for (let round = 0; round < 3; round++) await resumeAfter(sender, replaceAfterMs)
    expect((await require(sender, id)).hash).toBe(hash)
    await setBaseFee(gwei)
    await mine()
    await sender.resume(0)
    await mine()
    expect(await isInBlock(hash)).toBe(true)
    await sender.stop()
  })

  test('it is sent again, and replaced, though the clock was set back since it was signed', async () => {
    let isDeaf = true
    const deaf: Rpc = {
      ...rpc,
      call: async (method, params) =>
        isDeaf && method === 'eth_sendRawTransaction' ? '0x' : rpc.call(method, params),
    }
    const sender = await startSender({ by: deaf })
    const sent = [await sender.send(call()), await sender.send(call())]
    now -= 7_200_000
    isDeaf = false
    await sender.resume(10_000)
    await mine()
    for (const { hash } of sent) expect(await isInBlock(hash)).toBe(true)
    const { id, hash } = await sender.send(call())
    await setBaseFee(100n * gwei)
    await mine()
    now -= 7_200_000
    await resumeAfter(sender, replaceAfterMs)
    expect((await require(sender, id)).earlierHashes).toEqual([hash])
    await sender.stop()
    now += 4 * 3_600_000
  })
})

test('one that may not leave any more gives its nonce to one that does nothing, and that is replaced like others; no byte of it is kept', async () => {
  let mayLeave: MayLeave = async () => true
  const sender = await startSender({ mayLeave: (id) => mayLeave(id) })
  await setBaseFee(gwei / 10n)
  const { id, hash, nonce } = await sender.send(call())
  mayLeave = async () => Promise.reject(new Error('nobody can say'))
  await sender.resume(0)
  expect((await require(sender, id)).hash).toBe(hash)
  mayLeave = async () => false
  await sender.resume(0)
  const empty = await require(sender, id)
  expect(parseTransaction(empty.raw)).toMatchObject({ nonce, to: sender.address, data: '0x' })
  expect(empty).toMatchObject({ earlierHashes: [hash], earlierRaws: [] })
  await setBaseFee(100n * gwei)
  await mine()
  await resumeAfter(sender, 4 * replaceAfterMs)
  const higher = await require(sender, id)
  expect(higher).toMatchObject({ earlierHashes: [hash, empty.hash], earlierRaws: [] })
  await mine()
  expect(await isInBlock(higher.hash)).toBe(true)
  await sender.stop()
})

describe('which one of a nonce is mined', () => {
  test('the first one counts where it is mined after it was replaced, for the payment, too', async () => {
    const { payment, requirement } = signPayment(payer, 700n)
    // The node never sees the second one.
    let isDeaf = false
    const half: Rpc = {
      ...rpc,
      call: async (method, params) =>
        isDeaf && method === 'eth_sendRawTransaction' ? '0x' : rpc.call(method, params),
    }
    const sender = await startSender({ by: half })
    const facilitator = makeEvmFacilitator({
      ...{ rpc, network: devnet.network, sender, world: realWorld, log },
      ...{ pollMs: 4, settleTimeoutMs: 50 },
    })
    const id = `settle:${sent}`
    expect(await facilitator.settle(id, payment, requirement)).toMatchObject({ state: 'pending' })
    const first = await require(sender, id)
    isDeaf = true
    await resumeAfter(sender, replaceAfterMs)
    const second = await require(sender, id)
    expect(second.earlierHashes).toEqual([first.hash])
    await mine()
    const settled = { state: 'settled', transaction: first.hash }
    expect(await facilitator.lookup(id, payment, requirement)).toMatchObject(settled)
    expect(await facilitator.settle(id, payment, requirement)).toMatchObject(settled)
    await sender.resume(0)
    expect((await require(sender, id)).state).toBe('mined')
    await sender.stop()
  })

  test('after a reorganisation the other one may be mined, and the nonce is used once', async () => {
    const sender = await startSender()
    const { id, hash } = await sender.send(call())
    await setBaseFee(100n * gwei)
    await mine()
    await resumeAfter(sender, replaceAfterMs)
    await mine()
    await sender.resume(0)
    const replaced = await require(sender, id)
    expect(replaced.state).toBe('mined')
    await rpc.call('anvil_rollback', [2])
    await setBaseFee(gwei)
    await rpc
      .call('eth_sendRawTransaction', [encodeHex(replaced.earlierRaws[0] ?? Buffer.alloc(0))])
      // The node may have it, or its replacement, in its pool again.
      .catch(() => undefined)
    await sender.resume(0)
    await mine()
    const mined = await Promise.all([hash, replaced.hash].map(isInBlock))
    expect(mined.filter(Boolean)).toHaveLength(1)
    await sender.resume(0)
    expect((await require(sender, id)).state).toBe('mined')
    expect(await readTransactionCount(rpc, sender.address)).toBe(1n)
    await sender.stop()
  })
})

describe('a nonce that another transaction of the key took, which the journal does not know', () => {
  /** Sends under a nonce of the sender's key what its journal does not have. */
  async function sendForeign(key: Buffer, nonce: bigint): Promise<void> {
    const { chainId } = devnet.network
    const fees = { maxFeePerGas: 200n * gwei, maxPriorityFeePerGas: 100n * gwei }
    const to = `0x${'22'.repeat(20)}`
    const { raw } = signTransaction({ chainId, nonce, ...fees, gas: 30_000n, to, data: '0x' }, key)
    await rpc.call('eth_sendRawTransaction', [encodeHex(raw)])
  }

  test('ours is given up once the block of the other one is final, and not before', async () => {
    const key = realWorld.randomBytes(32)
    const sender = await startSender({ key })
    const { id, nonce } = await sender.send(call())
    await sendForeign(key, nonce)
    await mine()
    await resumeAfter(sender, 60_000)
    expect((await require(sender, id)).state).toBe('signed')
    await rpc.call('anvil_mine', [encodeQuantity(80n)])
    await sender.resume(0)
    expect((await require(sender, id)).state).toBe('replaced')
    await sender.stop()
  })

  test('ours is sent again where a reorganisation takes the other one back', async () => {
    const key = realWorld.randomBytes(32)
    const sender = await startSender({ key })
    const { id, nonce, hash } = await sender.send(call())
    await sendForeign(key, nonce)
    await mine()
    await sender.resume(0)
    await rpc.call('anvil_rollback', [1])
    // The other one would wait for a block again; nobody sends it any more.
    await rpc.call('anvil_dropAllTransactions', [])
    await sender.resume(0)
    await mine()
    expect(await isInBlock(hash)).toBe(true)
    await sender.resume(0)
    expect((await require(sender, id)).state).toBe('mined')
    await sender.stop()
  })

  test('ours is not taken for replaced where a reorganisation comes between the count and the receipts', async () => {
    let afterCount = async () => {}
    const torn: Rpc = {
      ...rpc,
      call: async (method, params) => {
        const answer = await rpc.call(method, params)
        if (method === 'eth_getTransactionCount') await afterCount()
        return answer
      },
    }
    const sender = await startSender({ by: torn })
    const { id, hash } = await sender.send(call())
    await mine()
    afterCount = async () => {
      afterCount = async () => {}
      await rpc.call('anvil_rollback', [1])
      await rpc.call('anvil_dropAllTransactions', [])
    }
    await sender.resume(0)
    await sender.resume(0)
    await mine()
    expect(await isInBlock(hash)).toBe(true)
    await sender.resume(0)
    expect((await require(sender, id)).state).toBe('mined')
    await sender.stop()
  })

  describe('on a chain whose blocks are final at once, by several nodes behind one address', () => {
    /** Its first count of each round comes from a node that is at the head, as the answers do that are not given here. */
    function startPair(answers: (params: readonly unknown[]) => Record<string, unknown>) {
      let lags = false
      let hasCounted = false
      const by: Rpc = {
        ...rpc,
        call: (method, params) => {
          const isFirst = !hasCounted && method === 'eth_getTransactionCount'
          if (isFirst) hasCounted = true
          const own = lags && !isFirst ? answers(params)[method] : undefined
          if (own !== undefined) return Promise.resolve(own)
          return rpc.call(method, params[0] === 'finalized' ? ['latest', false] : params)
        },
      }
      const lag = (does: boolean) => {
        lags = does
        hasCounted = false
      }
      return { by, lag }
    }

    test('ours is not taken for replaced while one of them has no receipt yet, however often it is asked within a minute', async () => {
      const { by, lag } = startPair(() => ({ eth_getTransactionReceipt: null }))
      const sender = await startSender({ by })
      const { id } = await sender.send(call())
      await mine()
      for (let round = 0; round < 6; round++) {
        lag(true)
        now += 10_000
        await sender.resume(0)
      }
      lag(false)
      await sender.resume(0)
      expect((await require(sender, id)).state).toBe('mined')
      await sender.stop()
    })

    test('ours is not taken for replaced by one that stands still before our block, however long', async () => {
      let head: unknown
      const { by, lag } = startPair(() => ({
        ...{ eth_blockNumber: head, eth_getTransactionCount: '0x0' },
        eth_getTransactionReceipt: null,
      }))
      const sender = await startSender({ by })
      const { id } = await sender.send(call())
      head = await rpc.call('eth_blockNumber', [])
      await mine()
      for (let round = 0; round < 3; round++) {
        lag(true)
        await mine()
        now += 120_000
        await sender.resume(0)
      }
      lag(false)
      await sender.resume(0)
      expect((await require(sender, id)).state).toBe('mined')
      await sender.stop()
    })
  })
})

test('one that was reverted, and that the blocks in place of its own have made, is made', async () => {
  const sender = await startSender()
  const { id } = await sender.send(call())
  await mine()
  await sender.resume(0)
  // As another block than the one that has it now would have had it; this look writes that down, the next one looks.
  sender.note({ id, state: 'reverted', blockNumber: 1n })
  await sender.resume(0)
  await sender.resume(0)
  expect((await require(sender, id)).state).toBe('mined')
  await sender.stop()
})

test('one that was reverted in a block that the chain has forgotten is open again, and may be made', async () => {
  const sender = await startSender()
  const { id } = await sender.send(call())
  await mine()
  await sender.resume(0)
  // As a contract would have it in the first block and not in the second one.
  sender.note({ id, state: 'reverted', blockNumber: 1n })
  await rpc.call('anvil_rollback', [1])
  await sender.resume(0)
  expect((await require(sender, id)).state).toBe('signed')
  await mine()
  await sender.resume(0)
  expect((await require(sender, id)).state).toBe('mined')
  await sender.stop()
})

describe('a death while a transaction is replaced', () => {
  test.each(['before the journal has it', 'before it leaves'])(
    '%s: the next process sends one of the nonce, and knows which is mined',
    async (when) => {
      const key = realWorld.randomBytes(32)
      const dying: World = {
        ...world,
        failpoint: (point) => {
          if (point === 'payment.replaced') throw new Error('died')
        },
      }
      const dead = await startSender({ key, in: dying })
      const { id, hash } = await dead.send(call())
      await setBaseFee(100n * gwei)
      await mine()
      if (when === 'before it leaves')
        await expect(resumeAfter(dead, replaceAfterMs)).rejects.toThrow('died')
      await dead.stop()
      const next = await startSender({ key })
      const found = await require(next, id)
      expect(found.earlierHashes).toEqual(when === 'before it leaves' ? [hash] : [])
      if (when !== 'before it leaves') await resumeAfter(next, replaceAfterMs)
      await mine()
      await next.resume(0)
      const decided = await require(next, id)
      expect(decided.state).toBe('mined')
      expect(await isInBlock(decided.hash)).toBe(true)
      expect(await readTransactionCount(rpc, next.address)).toBe(1n)
      await next.stop()
    },
  )

  test('who has lost the key replaces nothing', async () => {
    const key = realWorld.randomBytes(32)
    const old = await startSender({ key })
    const { id, hash } = await old.send(call())
    await old.stop()
    const next = await startSender({ key })
    await resumeAfter(old, replaceAfterMs)
    expect((await require(next, id)).hash).toBe(hash)
    await next.stop()
  })
})

test('a replacement offers a tenth more at least in both, also of nothing, and what is asked for now where that is more', () => {
  for (const base of [0n, 1n, 7n, 9n, gwei, 123_456_789n])
    for (const tip of [0n, 1n, 9n, gwei]) {
      const last = computeOffer({ baseFee: base, priorityFee: tip }, undefined)
      for (const fees of [
        { baseFee: base, priorityFee: tip },
        { baseFee: base * 50n, priorityFee: tip * 3n },
      ]) {
        const next = computeHigherOffer(last, fees, undefined)
        const now = computeOffer(fees, undefined)
        expect(next).toBeDefined()
        if (next === undefined) return
        for (const part of ['maxFeePerGas', 'maxPriorityFeePerGas'] as const) {
          expect(next[part] * 10n).toBeGreaterThanOrEqual(last[part] * 11n)
          expect(next[part]).toBeGreaterThan(last[part])
          expect(next[part]).toBeGreaterThanOrEqual(now[part])
        }
        expect(next.maxFeePerGas).toBeGreaterThanOrEqual(next.maxPriorityFeePerGas)
      }
    }
})

function signPayment(key: Buffer, amount: bigint) {
  const nowSeconds = BigInt(Math.floor(realWorld.now() / 1000))
  const { network } = devnet
  const fields = {
    ...{ from: deriveAddress(key), to: network.payTo, value: amount },
    ...{ validAfter: 0n, validBefore: nowSeconds + 300n },
    nonce: encodeHex(realWorld.randomBytes(32)),
  }
  const payment: SignedPayment = {
    ...{ version: 1, network: network.id, scheme: 'exact', receiptForm: 'base64' },
    payload: { ...fields, signature: signDigest(digestTransfer(network, fields), key) },
  }
  const requirement: Requirement = {
    ...{ network, amount, quoteId: 'q1.test', maxTimeoutSeconds: 60 },
    expiresAt: Number(nowSeconds) + 300,
  }
  return { payment, requirement }
}

test('a transaction that an earlier key of the network signed is sent again as it is, and keeps no other one back', async () => {
  const before = await startSender()
  const old = call()
  const { hash } = await before.send(old)
  await before.stop()
  await rpc.call('anvil_dropAllTransactions', [])
  const sender = await startSender()
  const fresh = call()
  const sent = await Promise.all([sender.send(old), sender.send(fresh)])
  expect(sent.map(({ id }) => id)).toEqual([old.id, fresh.id])
  expect(sent[0]?.hash).toBe(hash)
  await mine()
  expect(await Promise.all(sent.map((one) => isInBlock(one.hash)))).toEqual([true, true])
  expect((await require(sender, old.id)).hash).toBe(hash)
  await sender.stop()
})

describe('transactions that an earlier key of the network left', () => {
  const leave = async (count: number) => {
    const key = realWorld.randomBytes(32)
    const before = await startSender({ key })
    const left = []
    for (let n = 0; n < count; n++) left.push(await before.send(call()))
    await before.stop()
    await rpc.call('anvil_dropAllTransactions', [])
    return { key, left }
  }

  test('each of them is sent again as it is though nobody asks for it, so that it keeps none back which somebody asks for', async () => {
    const { left } = await leave(3)
    const [first, other, last] = left.map(({ id }) => id)
    // The last one is other work, of which nobody else knows whether it may leave.
    const sender = await startSender({ adopts: (id) => id === first || id === other })
    await mine()
    const inBlocks = await Promise.all(left.map(({ hash }) => isInBlock(hash)))
    expect(inBlocks).toEqual([true, true, false])
    await sender.resume(0)
    const states = [first, other, last].map(async (id = '') => (await require(sender, id)).state)
    expect(await Promise.all(states)).toEqual(['mined', 'mined', 'signed'])
    await sender.stop()
  })

  test('one whose nonce another transaction took is given up, so that what it was for can be signed by this key', async () => {
    const { key, left } = await leave(1)
    const [old] = left
    const raw = signTransaction(
      {
        ...{ chainId: devnet.network.chainId, nonce: 0n, gas: 30_000n, data: '0x' },
        ...{ to: `0x${'22'.repeat(20)}`, maxFeePerGas: 100n * gwei, maxPriorityFeePerGas: gwei },
      },
      key,
    ).raw
    await rpc.call('eth_sendRawTransaction', [encodeHex(raw)])
    await mine()
    const sender = await startSender({ adopts: (id) => id === old?.id })
    for (let n = 0; n < 200 && (await require(sender, old?.id ?? '')).state === 'signed'; n++) {
      now += 1_000
      await mine()
      await sender.resume(0)
    }
    expect(await require(sender, old?.id ?? '')).toMatchObject({ state: 'replaced' })
    await sender.stop()
  })

  test('those of a key that another process has in use are left to it', async () => {
    const key = realWorld.randomBytes(32)
    const other = await startSender({ key })
    const { id, hash } = await other.send(call())
    await rpc.call('anvil_dropAllTransactions', [])
    const sender = await startSender({ adopts: (left) => left === id })
    await mine()
    expect(await isInBlock(hash)).toBe(false)
    expect(await require(sender, id)).toMatchObject({ state: 'signed' })
    await other.stop()
    await sender.stop()
  })
})
