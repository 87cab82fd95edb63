import { expect, test } from 'vitest'
import { noLog } from '../base/log.ts'
import { realWorld as world } from '../base/world.ts'
import { makeNativeTransfers } from './native-transfer.ts'
import { makePaymentNetwork } from './networks.ts'
import type { NativePayment } from './protocol.ts'
import type { Rpc } from './rpc.ts'

test('a bounded number of callers who name transactions that are never mined is waited with', async () => {
  const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'11'.repeat(20)}` })
  // A node that knows every transaction, and has none in a block.
  const rpc: Rpc = {
    call: async (method) => (method === 'eth_getTransactionByHash' ? {} : null),
    close: () => undefined,
  }
  const native = makeNativeTransfers({
    ...{ network, rpc, world, log: noLog, confirmations: 1, pollMs: 5, returnSeconds: 60n },
    ...{ waitMs: 1_000, waitersMax: 2 },
  })
  const order: number[] = []
  const finds = [1, 2, 3].map((n) =>
    native.find({ transaction: `0x${`0${n}`.repeat(32)}`, to: network.payTo }).catch((error) => {
      order.push(n)
      throw error
    }),
  )
  const pending = { reason: { code: 'PAYMENT_PENDING', retryAfterSeconds: 2 } }
  expect(await Promise.allSettled(finds)).toMatchObject([pending, pending, pending])
  expect(order[0]).toBe(3)
  expect(order).toHaveLength(3)
})

test('a transfer whose block was replaced while it was looked up was not moved on', async () => {
  const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'11'.repeat(20)}` })
  const to = `0x${'22'.repeat(20)}`
  const transaction = `0x${'03'.repeat(32)}`
  const topics = [transferTopic, `0x${'33'.repeat(20)}`, to].map((word) => pad(word))
  const log = { address: network.asset.address, topics, data: pad('0x5'), logIndex: '0x0' }
  const blocks = { blockNumber: '0x7', transactionHash: transaction }
  const receipt = {
    ...blocks,
    status: '0x1',
    to: network.asset.address,
    logs: [{ ...log, ...blocks }],
  }
  // A node whose chain takes the block back once the receipt was read, so that the address has nothing.
  const receipts = [receipt, null]
  const rpc: Rpc = {
    call: async (method) => {
      if (method === 'eth_getTransactionReceipt') return receipts.shift()
      if (method === 'eth_getTransactionByHash') return {}
      if (method === 'eth_getBlockByNumber') return { timestamp: '0x10' }
      return method === 'eth_call' ? pad('0x0') : '0x9'
    },
    close: () => undefined,
  }
  const native = makeNativeTransfers({
    ...{ network, rpc, world, log: noLog, confirmations: 1, pollMs: 5, returnSeconds: 60n },
  })
  await expect(native.find({ transaction, to })).rejects.toMatchObject({
    code: 'PAYMENT_PENDING',
    details: { transaction, status: 'pending' },
  })
})

test('a transfer in a block that the chain of the head does not have is not confirmed, however high the head is', async () => {
  const network = makePaymentNetwork({ chainId: 84532, payTo: `0x${'11'.repeat(20)}` })
  const [to, from] = [`0x${'22'.repeat(20)}`, `0x${'33'.repeat(20)}`]
  const transaction = `0x${'03'.repeat(32)}`
  const topics = [transferTopic, from, to].map((word) => pad(word))
  const log = { address: network.asset.address, topics, data: pad('0x5'), logIndex: '0x0' }
  const chain = { hash: pad('0x7b') }
  const answers: Readonly<Record<string, () => unknown>> = {
    eth_getTransactionReceipt: () => ({
      ...{ blockNumber: '0x7', transactionHash: transaction, blockHash: pad('0x7a') },
      ...{ status: '0x1', to: network.asset.address },
      logs: [{ ...log, blockNumber: '0x7', transactionHash: transaction }],
    }),
    eth_getTransactionByHash: () => ({}),
    eth_getBlockByNumber: () => ({ timestamp: '0x10', hash: chain.hash }),
    eth_call: () => pad('0x5'),
    eth_blockNumber: () => '0x9',
  }
  const rpc: Rpc = { call: async (method) => answers[method]?.(), close: () => undefined }
  const native = makeNativeTransfers({
    ...{ network, rpc, world, log: noLog, confirmations: 3, pollMs: 5, returnSeconds: 2n ** 40n },
    waitMs: 20,
  })
  const payload = { transaction, to, from, value: 5n, logIndex: 0, blockNumber: 7n, blockTime: 16n }
  const payment: NativePayment = {
    ...{ version: 1, network: network.id, scheme: 'exact', receiptForm: 'json', payload },
  }
  await expect(native.find({ transaction, to })).rejects.toMatchObject({ code: 'PAYMENT_PENDING' })
  expect(await native.settle(payment)).toMatchObject({ state: 'pending', reason: 'not_confirmed' })
  chain.hash = pad('0x7a')
  expect(await native.find({ transaction, to })).toMatchObject({ transfer: { value: 5n } })
  expect(await native.settle(payment)).toMatchObject({ state: 'settled', blockNumber: 7n })
})

const transferTopic = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef'

function pad(hex: string): string {
  return `0x${hex.slice(2).padStart(64, '0')}`
}
