import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { noLog } from '../base/log.ts'
import { realWorld as world } from '../base/world.ts'
import { readTransactionTime } from './evm-chain.ts'
import { encodeHexWord, encodeNumberWord } from './hex.ts'
import { makeNativeTransfers } from './native-transfer.ts'
import { makePaymentNetwork } from './networks.ts'
import type { Requirement, SignedPayment } from './protocol.ts'
import { ReceiptReader, receiptBytesMax } from './receipt-reader.ts'
import { makeRemoteFacilitator } from './remote-facilitator.ts'
import { openRpc, type Rpc } from './rpc.ts'
import { topics } from './token.ts'

const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'11'.repeat(20)}` })
const token = network.asset.address
const transaction = `0x${'03'.repeat(32)}`
const sender = `0x${'33'.repeat(20)}`
const blockHash = (n: number) => `0x${String(n).padStart(64, '0')}`
type Event = { readonly address: string; readonly topics: readonly string[]; readonly data: string }
const stranger: Event = { address: `0x${'44'.repeat(20)}`, topics: [], data: '0x' }

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] }

/** Wraps an event as nodes do, with all that they say of its place. */
const makeLog = <T extends object>(event: T, at: number) => ({
  ...{ ...event, transactionHash: transaction, transactionIndex: '0x1', blockNumber: '0x7' },
  ...{ blockHash: blockHash(7), blockTimestamp: '0x65537f00', logIndex: `0x${at.toString(16)}` },
  removed: false,
})
const tooMany = { code: -32005, message: 'query returned more than 10000 results' }
const makeTransfer = (to: string, value: bigint): Event => ({
  address: token,
  topics: [topics.transfer, `0x${encodeHexWord(sender)}`, `0x${encodeHexWord(to)}`],
  data: `0x${encodeNumberWord(value)}`,
})

/** `logsMax`: the most logs that the node gives at once. */
type Chain = { block: number; logsMax: number }

/** A node whose chain has one transaction with these events, and counts what it is asked for. */
async function withNode(
  events: readonly Event[],
  use: (node: { rpc: Rpc; asked: Map<string, number>; chain: Chain }) => Promise<void>,
): Promise<void> {
  const chain: Chain = { block: 7, logsMax: Number.POSITIVE_INFINITY }
  const asked = new Map<string, number>()
  const place = () => ({ blockNumber: '0x7', blockHash: blockHash(chain.block) })
  const logs = events.map(makeLog)
  const results: Readonly<Record<string, (params: readonly unknown[]) => unknown>> = {
    eth_getTransactionReceipt: () => ({
      ...{
        ...place(),
        transactionHash: transaction,
        status: '0x1',
        to: token,
        gasUsed: '0x1',
        logs,
      },
    }),
    eth_getTransactionByHash: () => ({ ...place(), to: token, input: '0x' }),
    eth_blockNumber: () => '0x9',
    eth_getBlockByNumber: () => ({
      ...{ number: '0x9', timestamp: '0x10000', hash: blockHash(chain.block) },
    }),
    eth_call: () => `0x${encodeNumberWord(1_000_000n)}`,
    eth_getLogs: ([filter]) => {
      const { topics: wanted } = filter as { topics: (string | string[] | null)[] }
      const isWanted = (topic: string | undefined, at: number) =>
        [wanted[at] ?? topic].flat().includes(topic)
      const found = logs.filter((log) => wanted.every((_, at) => isWanted(log.topics[at], at)))
      return found.length > chain.logsMax ? undefined : found
    },
  }
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const calls: Call[] = JSON.parse(Buffer.concat(parts).toString())
    for (const { method } of calls) asked.set(method, (asked.get(method) ?? 0) + 1)
    response.end(
      JSON.stringify(
        calls.map(({ id, method, params }) => {
          const result = results[method]?.(params)
          return result === undefined ? { id, error: tooMany } : { id, result }
        }),
      ),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const rpc = openRpc({ url: `http://127.0.0.1:${port}`, world })
  try {
    await use({ rpc, asked, chain })
  } finally {
    rpc.close()
    server.closeAllConnections()
    server.close()
  }
}

function openNative(rpc: Rpc) {
  return makeNativeTransfers({
    ...{ network, rpc, world, log: noLog, confirmations: 1, pollMs: 5, returnSeconds: 60n },
  })
}

const makeStrangers = (count: number) => Array.from({ length: count }, () => stranger)
const to = `0x${'22'.repeat(20)}`

test('a receipt with more events than are looked at is refused in words, and is asked for once', async () => {
  const other = `0x${'55'.repeat(20)}`
  const events = [makeTransfer(to, 5n), makeTransfer(other, 0n), ...makeStrangers(24_000)]
  await withNode(events, async ({ rpc, asked }) => {
    const native = openNative(rpc)
    const refusal = expect.stringMatching(/too many events to be looked at; send the transfer in a/)
    for (let round = 0; round < 3; round++)
      expect(await native.find({ transaction, to: other })).toEqual({ refusal })
    expect(asked.get('eth_getTransactionReceipt')).toBe(1)
    // It did move money there, so it is read as far as anything is, and once.
    for (let round = 0; round < 3; round++)
      expect(await native.find({ transaction, to })).toEqual({ refusal })
    expect(asked.get('eth_getTransactionReceipt')).toBe(2)
  })
})

test('a receipt of some megabytes counts where it moved money to the address, and is asked for once more', async () => {
  const events = [...makeStrangers(9_000), makeTransfer(to, 5n)]
  await withNode(events, async ({ rpc, asked }) => {
    const native = openNative(rpc)
    for (let round = 0; round < 3; round++)
      expect(await native.find({ transaction, to })).toMatchObject({
        transfer: { from: sender, value: 5n, logIndex: 9_000 },
      })
    expect(asked.get('eth_getTransactionReceipt')).toBe(2)
  })
})

const nonce = `0x${'0a'.repeat(32)}`
const use: Event = {
  ...{ address: token, topics: [topics.used, `0x${encodeHexWord(sender)}`, nonce], data: '0x' },
}

/** A signed payment of 5 that anybody may have used, and its judge: claimed, and brought for the first time. */
function openSigned(rpc: Rpc, validBefore = 2n ** 40n) {
  const payload = { from: sender, to: network.payTo, value: 5n, nonce }
  const ends = { validAfter: 0n, validBefore, signature: '0x' }
  const payment: SignedPayment = {
    ...{ version: 1, network: network.id, scheme: 'exact', receiptForm: 'json' },
    payload: { ...payload, ...ends },
  }
  const requirement: Requirement = {
    ...{ network, amount: 5n, quoteId: 'q', expiresAt: 0, maxTimeoutSeconds: 60 },
  }
  const url = 'http://127.0.0.1:1'
  const facilitator = makeRemoteFacilitator({ url, network, world, log: noLog, rpc })
  return {
    lookUp: () => facilitator.lookup('pay_1', payment, requirement),
    findUse: () => facilitator.findUse(payment, requirement),
  }
}

test('a signed payment that was used among more events than are looked at counts by the logs of its block, and its receipt is asked for once', async () => {
  const events = [...makeStrangers(3), use, makeTransfer(network.payTo, 5n)]
  await withNode([...events, ...makeStrangers(24_000)], async ({ rpc, asked }) => {
    const signed = openSigned(rpc)
    for (let round = 0; round < 3; round++) {
      const settled = { state: 'settled', transaction, blockNumber: 7n }
      expect(await signed.lookUp()).toEqual(settled)
      expect(await signed.findUse()).toEqual(settled)
    }
    expect(asked.get('eth_getTransactionReceipt')).toBe(1)
  })
})

test('it does not count where the token did not move its money right after', async () => {
  const events = [use, stranger, makeTransfer(network.payTo, 5n), ...makeStrangers(6_000)]
  await withNode(events, async ({ rpc }) =>
    expect(await openSigned(rpc).lookUp()).toEqual({
      ...{ state: 'failed', reason: 'no_transfer', final: true },
    }),
  )
})

const makeMoves = (count: number) =>
  Array.from({ length: count }, () => makeTransfer(network.payTo, 0n))

test('moves of nothing, which anybody may make in its payer’s name, do not hide it', async () => {
  const events = [use, makeTransfer(network.payTo, 5n), ...makeMoves(300), ...makeStrangers(6_000)]
  await withNode(events, async ({ rpc, asked }) => {
    const signed = openSigned(rpc)
    for (let round = 0; round < 3; round++)
      expect(await signed.lookUp()).toEqual({ state: 'settled', transaction, blockNumber: 7n })
    expect(asked.get('eth_getTransactionReceipt')).toBe(1)
    // One search each time, and two looks at the block, the first of them short.
    expect(asked.get('eth_getLogs')).toBe(5)
  })
})

/** More moves than a node's answer may have. */
const hidden = [use, makeTransfer(network.payTo, 5n), ...makeMoves(18_000)]

test('one among more of them than are ever read is never over, and costs no bytes from the second look on', async () => {
  await withNode(hidden, async ({ rpc, asked }) => {
    const reason = 'its transaction has too many events to be looked at'
    const pending = { state: 'pending', transaction, reason, usedIn: transaction }
    const open = openSigned(rpc)
    for (let round = 0; round < 3; round++) {
      expect(await open.lookUp()).toEqual(pending)
      expect(await open.findUse()).toEqual(pending)
    }
    expect(asked.get('eth_getTransactionReceipt')).toBe(1)
    expect(asked.get('eth_getLogs')).toBe(8)
    const ended = openSigned(rpc, 5n)
    expect(await ended.lookUp()).toEqual(pending)
    expect(await ended.findUse()).toEqual(pending)
  })
})

test('the same where the provider itself bounds the logs of an answer', async () => {
  const events = [use, makeTransfer(network.payTo, 5n), ...makeMoves(300), ...makeStrangers(6_000)]
  await withNode(events, async ({ rpc, chain }) => {
    chain.logsMax = 200
    const reason = 'its transaction has too many events to be looked at'
    const pending = { state: 'pending', transaction, reason, usedIn: transaction }
    expect(await openSigned(rpc).lookUp()).toEqual(pending)
  })
})

test('the logs of a payer’s uses in a block are read once, however many of them are named', async () => {
  const nonces = Array.from({ length: 40 }, (_, at) => `0x${encodeNumberWord(BigInt(at + 1))}`)
  const uses = nonces.flatMap((nonce) => [
    { ...use, topics: [topics.used, `0x${encodeHexWord(sender)}`, nonce] },
    makeTransfer(network.payTo, 5n),
  ])
  await withNode([...uses, ...makeMoves(300), ...makeStrangers(6_000)], async ({ rpc, asked }) => {
    const reader = new ReceiptReader(rpc, token)
    const find = (nonce: string) =>
      reader.findUse(transaction, { from: sender, to: network.payTo, nonce })
    await find(nonces[0] ?? '')
    for (const receipt of await Promise.all(nonces.map(find)))
      expect(receipt).toMatchObject({ logs: [{ data: '0x' }, { data: expect.any(String) }] })
    // One look is short; the other one is for all.
    expect(asked.get('eth_getLogs')).toBe(2)
    expect(await find(`0x${'0b'.repeat(32)}`)).toBeUndefined()
  })
})

test('the time of a transaction is read whatever it did', async () => {
  await withNode(makeStrangers(24_000), async ({ rpc, asked }) => {
    expect(await readTransactionTime(rpc, transaction)).toBe(65_536n)
    expect(asked.get('eth_getTransactionReceipt')).toBeUndefined()
  })
})

test('however many name one transaction at once, its receipt is read once for those who came before, and once for all after', async () => {
  await withNode([makeTransfer(to, 5n)], async ({ rpc, asked }) => {
    const native = openNative(rpc)
    const finds = Array.from({ length: 200 }, () => native.find({ transaction, to }))
    for (const found of await Promise.all(finds))
      expect(found).toMatchObject({ transfer: { from: sender, value: 5n } })
    for (const method of ['eth_getTransactionReceipt', 'eth_getTransactionByHash'])
      expect(asked.get(method)).toBeLessThanOrEqual(3)
  })
})

test('a long receipt is asked for once for all who name it, and again once another block has its transaction', async () => {
  await withNode([...makeStrangers(900), makeTransfer(to, 5n)], async ({ rpc, asked, chain }) => {
    const native = openNative(rpc)
    const other = { transaction, to: `0x${'55'.repeat(20)}` }
    const refusal = expect.stringMatching(/moved no/)
    const finds = Array.from({ length: 8 }, () => native.find(other))
    expect(new Set((await Promise.all(finds)).map((one) => JSON.stringify(one))).size).toBe(1)
    expect(await native.find(other)).toEqual({ refusal })
    expect(asked.get('eth_getTransactionReceipt')).toBe(1)
    expect(await native.find({ transaction, to })).toMatchObject({
      transfer: { from: sender, value: 5n, logIndex: 900 },
    })
    expect(asked.get('eth_getTransactionReceipt')).toBe(1)
    chain.block = 8
    expect(await native.find(other)).toEqual({ refusal })
    expect(asked.get('eth_getTransactionReceipt')).toBe(2)
  })
})

test('a transaction that pays as many as its gas allows counts, and the answer is read in turns', async () => {
  const bytes = JSON.stringify(makeLog(makeTransfer(to, 2n ** 60n), 1_000)).length
  expect(Math.floor(receiptBytesMax / bytes)).toBeGreaterThan(1_600)
  const many = Array.from({ length: 1_600 }, (_, at) =>
    makeTransfer(at === 1_500 ? to : `0x${at.toString(16).padStart(40, '0')}`, 5n),
  )
  await withNode(many, async ({ rpc }) => {
    let turns = 0
    let isOver = false
    const count = () => {
      turns += 1
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    expect(await openNative(rpc).find({ transaction, to })).toMatchObject({
      transfer: { from: sender, value: 5n, logIndex: 1_500 },
    })
    isOver = true
    expect(turns).toBeGreaterThan(30)
  })
})
