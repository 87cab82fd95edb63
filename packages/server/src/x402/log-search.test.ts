import { expect, test } from 'vitest'
import { Fault } from '../base/fault.ts'
import { AnswerTooLarge } from './http-json.ts'
import { LogSearch, rangeBlocks, rangesMax } from './log-search.ts'
import type { Rpc } from './rpc.ts'

const address = `0x${'a'.repeat(40)}`
const topic = `0x${'b'.repeat(64)}`
const filter = { address, topics: [topic] }
const hash = (block: number) => `0x${block.toString(16).padStart(64, '0')}`
const all = () => true

/** A node with so many blocks, and a log in some of them; it counts the ranges that it is asked for. */
function makeNode(head: number, blocks: number[] = []) {
  const node = { head, blocks, asked: 0 }
  const call: Rpc['call'] = async (method, [asked]) => {
    if (method === 'eth_blockNumber') return `0x${node.head.toString(16)}`
    expect(method).toBe('eth_getLogs')
    node.asked += 1
    const { fromBlock, toBlock } = asked as { fromBlock: string; toBlock: string }
    expect(BigInt(toBlock) - BigInt(fromBlock)).toBeLessThan(rangeBlocks)
    return node.blocks
      .filter((block) => block >= Number(fromBlock) && block <= Number(toBlock))
      .map((block) => ({ address, topics: [topic], data: '0x', transactionHash: hash(block) }))
  }
  const search = new LogSearch({ call } as Rpc)
  const count = async (
    isMatch: (log: { transactionHash: string }) => boolean = all,
    sought = filter,
  ) => {
    const before = node.asked
    const found = await search.find(sought, isMatch)
    return [found?.transactionHash, node.asked - before]
  }
  return { node, count }
}

test('a search without a result is made once; repeated, it asks for the newest range, and for what came since', async () => {
  const { node, count } = makeNode(100_000)
  expect(await count()).toEqual([undefined, rangesMax])
  expect(await count()).toEqual([undefined, 1])
  node.head += 2_500
  expect(await count()).toEqual([undefined, 3])
  expect(await count()).toEqual([undefined, 1])
  node.blocks.push(node.head)
  expect(await count()).toEqual([hash(node.head), 1])
  node.head += 100_000
  expect(await count()).toEqual([undefined, rangesMax])
})

test('of searches at once for one filter the later ones know what the first one read', async () => {
  const { node, count } = makeNode(100_000)
  await Promise.all(Array.from({ length: 10 }, () => count()))
  expect(node.asked).toBe(rangesMax + 9)
})

test('of more searches at once for one filter than may wait the last ones are told that nobody answers, and hold up no other filter', async () => {
  const { node, count } = makeNode(100_000)
  const all = Array.from({ length: 33 }, () => count())
  await expect(count()).rejects.toMatchObject({ code: 'PAYMENT_NETWORK_UNREACHABLE' })
  const other = { address, topics: [hash(1)] }
  expect((await count(undefined, other))[0]).toBeUndefined()
  await Promise.all(all)
  const asked = node.asked
  expect((await count())[0]).toBeUndefined()
  expect(node.asked).toBe(asked + 1)
})

test('a log that is found deep is found again by one request, and what lies deeper is read when it is needed', async () => {
  const { node, count } = makeNode(100_000, [100_000 - 20_500, 100_000 - 41_000])
  expect(await count()).toEqual([hash(100_000 - 20_500), 11])
  expect(await count()).toEqual([hash(100_000 - 20_500), 1])
  const isOlder = ({ transactionHash }: { transactionHash: string }) =>
    transactionHash === hash(100_000 - 41_000)
  expect(await count(isOlder)).toEqual([hash(100_000 - 41_000), 11])
  expect(await count(isOlder)).toEqual([hash(100_000 - 41_000), 1])
  // A reorganization of the newest blocks is seen.
  node.blocks.push(100_000 - 3)
  expect(await count()).toEqual([hash(100_000 - 3), 1])
  node.blocks.pop()
  expect(await count()).toEqual([hash(100_000 - 20_500), 1])
})

test('a log at the end of a day of blocks is found, and one before it is not', async () => {
  const last = 100_000 - Number(rangeBlocks) * rangesMax + 1
  expect(await makeNode(100_000, [last]).count()).toEqual([hash(last), rangesMax])
  expect(await makeNode(100_000, [last - 1]).count()).toEqual([undefined, rangesMax])
  expect(await makeNode(1_500, [0]).count()).toEqual([hash(0), 1])
})

test('the logs that are remembered have one bound, however many filters they are of', async () => {
  const { count } = makeNode(100_000, Array(1_000).fill(100_000 - 20_500))
  const search = (at: number) => count(() => false, { address, topics: [hash(at)] })
  for (let at = 0; at < 101; at++) expect(await search(at)).toEqual([undefined, rangesMax])
  expect(await search(100)).toEqual([undefined, 1])
  expect(await search(0)).toEqual([undefined, rangesMax])
})

test('a range with more than travels with others is asked for alone, and by halves where that is too much', async () => {
  const asked: string[] = []
  const call: Rpc['call'] = async (method, [range], options) => {
    if (method === 'eth_blockNumber') return '0x3'
    const { fromBlock, toBlock } = range as { fromBlock: string; toBlock: string }
    asked.push(`${options?.isHeavy === true ? 'alone' : 'shared'} ${fromBlock} ${toBlock}`)
    if (options?.isHeavy !== true || fromBlock !== toBlock)
      throw new Fault('PAYMENT_NETWORK_UNREACHABLE', { cause: new AnswerTooLarge('long') })
    return [{ address, topics: [topic], data: '0x', transactionHash: hash(Number(fromBlock)) }]
  }
  const found = await new LogSearch({ call } as Rpc).find(
    filter,
    ({ transactionHash }) => transactionHash === hash(2),
  )
  expect(found?.transactionHash).toBe(hash(2))
  expect(asked).toEqual([
    ...['shared 0x0 0x3', 'alone 0x0 0x3', 'alone 0x0 0x1', 'alone 0x0 0x0', 'alone 0x1 0x1'],
    ...['alone 0x2 0x3', 'alone 0x2 0x2', 'alone 0x3 0x3'],
  ])
})
