import { expect, test } from 'vitest'
import { realWorld as world } from '../base/world.ts'
import type { Rpc } from './rpc.ts'
import { TransactionReceipts } from './transaction-receipts.ts'

const hash = `0x${'ab'.repeat(32)}`

test('a receipt of a block that is replaced while the node is asked for its head is not confirmed', async () => {
  let isReplaced = false
  let heads = 0
  // Block 18 has the transaction until the node, asked for its head, has seen another block 18 and block 19.
  const rpc: Rpc = {
    call: async (method) => {
      if (method === 'eth_blockNumber') {
        heads += 1
        await world.sleep(10)
        isReplaced = true
        return '0x13'
      }
      return {
        transactionHash: hash,
        blockNumber: '0x12',
        status: isReplaced ? '0x0' : '0x1',
        logs: [],
      }
    },
    close: () => undefined,
  }
  const receipts = new TransactionReceipts({ rpc, world, pollMs: 1, confirmations: 2 })
  expect(await receipts.wait([hash], 60_000)).toMatchObject({ succeeded: false, blockNumber: 18n })
  expect(heads).toBe(1)
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
