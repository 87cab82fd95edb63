import { createServer } from 'node:http'
import type { Json } from '../support/service.ts'

/**
 * The ways of a node: it behaves as the chain's own does; takes no transaction and says so; answers each call with an
 * error; never answers; says that it took a transaction and did not; changes a byte of each transaction's data; hides
 * all logs; has lost all transactions and receipts; has no receipt yet of what the chain has; the same, on a chain whose
 * blocks are final at once; tells of heights that nobody can have counted to; tells of blocks as if they were in another
 * fork; names a newest block that no chain has; or answers with an error where it is asked for a block above its newest one,
 as nodes of Avalanche do.
 */
export type Behaviour =
  | 'honest'
  | 'full'
  | 'refuse'
  | 'hang'
  | 'swallow'
  | 'forge'
  | 'withhold'
  | 'forget'
  | 'lag'
  | 'lag at once'
  | 'soar'
  | 'fork'
  | 'vain'
  | 'strict'

/** A node before that of a chain, which behaves as a test says. */
export type FaultyNode = {
  readonly url: string
  readonly behave: (behaviour: Behaviour) => void
  /** Counts the transactions that it kept to itself. */
  readonly swallowed: () => number
  readonly stop: () => Promise<void>
}

/** Two above the height of its receipts. */
const soaring = `0x1${'0'.repeat(49)}2`

export async function startFaultyNode(url: string): Promise<FaultyNode> {
  let behaviour: Behaviour = 'honest'
  let swallowed = 0
  const ask = async (call: Json): Promise<Json> => {
    if (behaviour === 'refuse')
      return { jsonrpc: '2.0', id: call.id, error: { code: -32_000, message: 'too busy' } }
    if (behaviour === 'full' && call.method === 'eth_sendRawTransaction')
      return { jsonrpc: '2.0', id: call.id, error: { code: -32_000, message: 'txpool is full' } }
    if (behaviour === 'swallow' && call.method === 'eth_sendRawTransaction') {
      swallowed += 1
      return { jsonrpc: '2.0', id: call.id, result: `0x${'0'.repeat(64)}` }
    }
    const isFinalAsked = behaviour === 'lag at once' && call.params?.[0] === 'finalized'
    const asked = isFinalAsked ? { ...call, params: ['latest', false] } : call
    const answer = await fetch(url, {
      method: 'POST',
      body: JSON.stringify(asked),
      headers: { 'content-type': 'application/json' },
    })
    const answered: Json = await answer.json()
    if (behaviour === 'forget' && /Receipt|TransactionByHash/.test(call.method))
      answered.result = null
    const isReceipt = call.method === 'eth_getTransactionReceipt'
    if (
      behaviour === 'strict' &&
      call.method === 'eth_getBlockByNumber' &&
      answered.result === null
    )
      return {
        ...{ jsonrpc: '2.0', id: call.id },
        error: { code: -32_000, message: 'cannot query unfinalized data' },
      }
    if (/^lag/.test(behaviour) && isReceipt) answered.result = null
    if (behaviour === 'soar' && call.method === 'eth_blockNumber') answered.result = soaring
    if (behaviour === 'soar' && isReceipt && answered.result !== null)
      answered.result.blockNumber = `0x1${'0'.repeat(50)}`
    if (behaviour === 'fork' && isReceipt && answered.result !== null)
      answered.result.blockHash = `0x${'f0'.repeat(32)}`
    if (behaviour === 'vain' && call.method === 'eth_blockNumber')
      answered.result = `0x1${'0'.repeat(10)}`
    if (behaviour === 'withhold' && call.method === 'eth_getLogs') answered.result = []
    if (behaviour === 'forge' && call.method === 'eth_getTransactionByHash')
      answered.result.input = `${answered.result.input.slice(0, -2)}ee`
    return answered
  }
  const server = createServer(async (request, reply) => {
    if (behaviour === 'hang') return
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const calls: Json = JSON.parse(Buffer.concat(parts).toString())
    const answers = Array.isArray(calls) ? await Promise.all(calls.map(ask)) : await ask(calls)
    reply.setHeader('content-type', 'application/json')
    reply.end(JSON.stringify(answers))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('there is a port')
  return {
    url: `http://127.0.0.1:${address.port}`,
    behave: (next) => {
      behaviour = next
      if (next !== 'hang') server.closeIdleConnections()
    },
    swallowed: () => swallowed,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
