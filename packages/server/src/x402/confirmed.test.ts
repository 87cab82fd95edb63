import { expect, test } from 'vitest'
import { filterConfirmed, findConfirmed } from './confirmed.ts'
import { type Rpc, RpcError } from './rpc.ts'

const blockHash = (height: number) => `0x${String(height).padStart(64, '0')}`
const found = (height: number) => ({ blockNumber: BigInt(height), blockHash: blockHash(height) })

/** A node at height 9 that is too busy to tell of block 5. */
const busy: Rpc = {
  call: async (method, [asked]) => {
    if (method === 'eth_blockNumber') return '0x9'
    if (asked === '0x5') throw new RpcError({ code: -32_005, message: 'rate limit exceeded' })
    return { hash: blockHash(Number(asked)) }
  },
  close: () => undefined,
}

test('what a node that is busy says nothing of is not called gone, and holds up no others', async () => {
  await expect(findConfirmed(busy, 2, async () => found(5))).rejects.toThrow()
  expect(await findConfirmed(busy, 2, async () => found(6))).toEqual(found(6))
  const list = async () => [found(5), found(6), found(9)]
  expect(await filterConfirmed(busy, 2, { list, onSilence: 'skip' })).toEqual([found(6)])
  await expect(filterConfirmed(busy, 2, { list, onSilence: 'throw' })).rejects.toThrow()
})
