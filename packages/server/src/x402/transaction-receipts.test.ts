import { expect, test } from 'vitest'
import { realWorld as world } from '../base/world.ts'
import { type Rpc, toUnreachable } from './rpc.ts'
import { TransactionReceipts } from './transaction-receipts.ts'

const hash = `0x${'ab'.repeat(32)}`

const [blockHash, otherHash] = ['0a', '0b'].map((byte) => `0x${byte.repeat(32)}`)

test('a receipt of a block that is replaced while the node is asked for its head is not confirmed', async () => {
  let isReplaced = false
  // Block 18 has the transaction until the node, asked for its head, has seen another block 18 and block 19.
  const rpc: Rpc = {
    call: async (method) => {
      if (method === 'eth_blockNumber') {
        await world.sleep(10)
        isReplaced = true
        return '0x13'
      }
      const block = isReplaced ? otherHash : blockHash
      if (method === 'eth_getBlockByNumber') return { hash: block }
      return {
        transactionHash: hash,
        blockNumber: '0x12',
        blockHash: block,
        status: isReplaced ? '0x0' : '0x1',
        logs: [],
      }
    },
    close: () => undefined,
  }
  const receipts = new TransactionReceipts({ rpc, world, pollMs: 1, confirmations: 2 })
  expect(await receipts.wait([hash], 60_000)).toMatchObject({ succeeded: false, blockNumber: 18n })
})

test('a receipt of a block that the chain of the head does not have is not confirmed', async () => {
  const asked: string[] = []
  // One of two nodes behind a URL stands still at a block 18 that the other one does not have.
  const answers: Readonly<Record<string, unknown>> = {
    eth_blockNumber: '0x20',
    eth_getBlockByNumber: { hash: otherHash },
    eth_getTransactionReceipt: {
      ...{ transactionHash: hash, blockNumber: '0x12', blockHash, status: '0x1', logs: [] },
    },
  }
  const rpc: Rpc = {
    call: async (method) => {
      asked.push(method)
      return answers[method]
    },
    close: () => undefined,
  }
  const open = (confirmations: number) =>
    new TransactionReceipts({ rpc, world, pollMs: 1, confirmations })
  expect(await open(3).wait([hash], 0)).toBeUndefined()
  // Together with the receipt, and together after it.
  expect(asked).toEqual([
    ...['eth_blockNumber', 'eth_getTransactionReceipt', 'eth_blockNumber', 'eth_getBlockByNumber'],
  ])
  asked.length = 0
  expect(await open(3).wait([hash], 0)).toBeUndefined()
  expect(await open(16).wait([hash], 0)).toBeUndefined()
  // One that is not deep enough needs no look at its block.
  expect(asked.filter((method) => method === 'eth_getBlockByNumber').length).toBe(1)
})

test('a height that a node does not answer keeps the receipts of others from nobody', async () => {
  const hashes = ['0x12', '0x13'].map((height) => `0x${height.slice(2).repeat(32)}`)
  const rpc: Rpc = {
    call: async (method, [asked]) => {
      if (method === 'eth_blockNumber') return '0x20'
      if (asked === hash) return null
      if (method === 'eth_getTransactionReceipt')
        return {
          ...{ transactionHash: asked, blockNumber: String(asked).slice(0, 4), blockHash },
          ...{ status: '0x1', logs: [] },
        }
      if (asked === '0x13') throw toUnreachable(new Error('no answer'))
      return { hash: blockHash }
    },
    close: () => undefined,
  }
  const receipts = new TransactionReceipts({ rpc, world, pollMs: 1, confirmations: 3 })
  // Those that come while a round is under way are asked for together in the next one.
  const first = receipts.wait([hash], 1)
  const found = await Promise.all(hashes.map((one) => receipts.wait([one], 0)))
  await first
  expect(found.map((receipt) => receipt?.blockNumber)).toEqual([18n, undefined])
})

/** A node that takes its time, and has the receipt once it is there. */
function makeSlowNode(found: { isThere: boolean }): Rpc {
  const receipt = { transactionHash: hash, blockNumber: '0x12', status: '0x1', logs: [] }
  return {
    call: async () => {
      const answer = found.isThere ? receipt : null
      await world.sleep(10)
      return answer
    },
    close: () => undefined,
  }
}

test('who does not wait is answered by the node, also while others are asked for', async () => {
  const found = { isThere: false }
  const receipts = new TransactionReceipts({
    rpc: makeSlowNode(found),
    world,
    pollMs: 1,
    confirmations: 1,
  })
  const other = receipts.wait([`0x${'cd'.repeat(32)}`], 50)
  await world.sleep(3)
  found.isThere = true
  expect(await receipts.wait([hash], 0)).toMatchObject({ succeeded: true })
  await other
})

test('who waits briefly for a transaction does not wait for those who wait longer', async () => {
  const receipts = new TransactionReceipts({
    ...{ rpc: makeSlowNode({ isThere: false }), world, pollMs: 1, confirmations: 1 },
  })
  let isOver = false
  const long = receipts.wait([hash], 2_000).then(() => {
    isOver = true
  })
  expect(await receipts.wait([hash], 0)).toBeUndefined()
  expect(isOver).toBe(false)
  await long
})
