import { createServer, type Server } from 'node:http'
import { afterEach, expect, test } from 'vitest'
import { realWorld } from '../../base/world.ts'
import { openRpc } from '../../x402/rpc.ts'
import { readChunks } from './read-chunks.ts'

type Range = { readonly from: number; readonly to: number; readonly isOfOne: boolean }

/** A node that names this head, and gives these logs or refuses. */
type Node = {
  readonly head: string
  readonly giveLogs: (range: Range) => readonly object[]
}

const contract = `0x${'c0'.repeat(20)}`
const sender = `0x${'5e'.repeat(20)}`
let server: Server | undefined

afterEach(async () => {
  await new Promise((resolve) => (server === undefined ? resolve(0) : server.close(resolve)))
  server = undefined
})

async function startNode({ head, giveLogs }: Node): Promise<string> {
  const answer = (method: string, [filter]: readonly Record<string, string>[]) => {
    if (method === 'eth_blockNumber') return { result: head }
    const [from, to] = [Number(filter?.fromBlock), Number(filter?.toBlock)]
    try {
      return { result: giveLogs({ from, to, isOfOne: filter?.topics?.[1] !== null }) }
    } catch (error) {
      return { error: { code: -32_005, message: String(error) } }
    }
  }
  const started = createServer(async (request, reply) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const calls = JSON.parse(Buffer.concat(parts).toString())
    reply.end(
      JSON.stringify(
        calls.map(({ id, method, params }: { id: number; method: string; params: [] }) => ({
          ...{ jsonrpc: '2.0', id },
          ...answer(method, params),
        })),
      ),
    )
  })
  server = started
  await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve))
  const address = started.address()
  if (address === null || typeof address === 'string') throw new Error('there is a port')
  return `http://127.0.0.1:${address.port}`
}

async function countChunks(url: string, by?: string): Promise<number> {
  const rpc = openRpc({ url, world: realWorld })
  const options = { contract, origin: 'service/shop', sender: by, fromBlock: 0n }
  try {
    let count = 0
    for await (const _ of readChunks(rpc, { ...options, onProgress: () => undefined })) count += 1
    return count
  } finally {
    rpc.close()
  }
}

test('a head that no chain has ends the search at once, with the node at fault', async () => {
  const node = { head: `0x1${'0'.repeat(10)}`, giveLogs: () => [] }
  await expect(countChunks(await startNode(node))).rejects.toThrow('which no chain has')
}, 10_000)

const makeLog = (data: string) => ({
  ...{ address: contract, topics: [], data },
  transactionHash: `0x${'7a'.repeat(32)}`,
})

test.each([
  ['gives more than is read', () => [makeLog(`0x${'00'.repeat(4_300_000)}`)]],
  [
    'refuses them',
    () => {
      throw new Error('query returned more than 10000 results')
    },
  ],
])(
  'a block with too many events of strangers, of which the node %s, is told with the way out',
  async (_, giveMany) => {
    const url = await startNode({
      head: '0x3',
      giveLogs: ({ from, to, isOfOne }) => (!isOfOne && from <= 2 && to >= 2 ? giveMany() : []),
    })
    await expect(countChunks(url)).rejects.toThrow(/block 2 .*--sender/)
    expect(await countChunks(url, sender)).toBe(0)
  },
  60_000,
)

test('a node that is away is not taken for one with too many events', async () => {
  await expect(countChunks('http://127.0.0.1:1')).rejects.toThrow('cannot be reached')
})

test('ranges that became short, as the node had trouble, become long again', async () => {
  let calls = 0
  const url = await startNode({
    head: '0x30d40',
    giveLogs: () => {
      calls += 1
      if (calls <= 15) throw new Error('busy')
      return []
    },
  })
  expect(await countChunks(url)).toBe(0)
  expect(calls).toBeLessThan(400)
}, 60_000)
