import { createHash } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { decodeBase64, encodeBase64 } from '@tollbase/verify/bytes'
import { computeCommitment } from '@tollbase/verify/celestia/commitment'
import { type CelestiaHeader, formatBlockHash, hashHeader } from '@tollbase/verify/celestia/header'
import { requireBlobNamespace } from '@tollbase/verify/celestia/namespace'
import type { Json } from '../service.ts'
import { buildSquare, type Square } from './square.ts'

/**
 * The ways of the node:
 * - honest: as the published API says
 * - busy: HTTP 429 to all; hang: no answer to anything
 * - mute: takes a blob, and ends the connection without an answer; tardy: answers that it timed out, and includes the blob
 *   some blocks later; forgetful: the same answer, and never includes it
 * - poor, dear, mismatch: refuses to send, each with the text of the real node
 * - internal, limited, walled, choosy: takes a blob, includes it and answers all the same with JSON-RPC's internal error, with
 *   HTTP 429, with HTTP 403, or that the fee is too low
 * - plain: knows no `state.SubmitPayForBlob`; misplacing: tells the height of another block; boasting: tells a height that
 *   no block has; heightless: tells the height 0
 * - forging: another proof, of another blob; garbling: a proof of no form that is known; lying: a header that was changed
 * - vain: its newest block has a height that no chain reaches; vain-mute: the same, and it is mute besides
 * - deaf: answers for its newest block, and ends the connection of anything else
 * - silent: answers 200 and a text that is no answer to what was asked
 */
export type Behaviour =
  | 'honest'
  | 'busy'
  | 'hang'
  | 'mute'
  | 'tardy'
  | 'forgetful'
  | 'poor'
  | 'dear'
  | 'mismatch'
  | 'internal'
  | 'limited'
  | 'walled'
  | 'choosy'
  | 'plain'
  | 'misplacing'
  | 'boasting'
  | 'heightless'
  | 'forging'
  | 'garbling'
  | 'lying'
  | 'vain'
  | 'vain-mute'
  | 'deaf'
  | 'silent'

export type CelestiaBlock = {
  readonly height: number
  readonly hash: string
  readonly header: CelestiaHeader
  readonly square: Square
}

type RawBlob = { readonly namespace: Uint8Array; readonly data: Uint8Array }

/** A celestia-node of a test's own, with a chain that makes real squares; it speaks the published API. */
export type LoopbackNode = {
  readonly url: string
  readonly chainId: string
  readonly behave: (behaviour: Behaviour) => void
  /** Makes blocks, without anything in them but what is given. */
  readonly mine: (count: number, blobs?: readonly RawBlob[]) => void
  /** Forgets all blocks below a height. */
  readonly prune: (below: number) => void
  readonly blocks: () => readonly CelestiaBlock[]
  /** Lists the blobs that it has included, or will, whatever it answered. */
  readonly taken: () => readonly RawBlob[]
  /** Counts the calls of a method. */
  readonly calls: (method: string) => number
  /** Stops to listen, and listens again at the same port. */
  readonly pause: () => Promise<void>
  readonly resume: () => Promise<void>
  readonly stop: () => Promise<void>
}

/** Blocks after which a blob is included by a node that said it was not. */
const tardyBlocks = 3
/** A height that no chain reaches. */
const vainHeight = 10 ** 12

/** The answer that a gateway, or the node, gives although the blob was taken. */
class LateAnswer extends Error {
  readonly status: number
  readonly code: number

  constructor(message: string, { status = 200, code = 1 }: { status?: number; code?: number }) {
    super(message)
    this.status = status
    this.code = code
  }
}

const lateAnswers: Partial<Readonly<Record<Behaviour, LateAnswer>>> = {
  internal: new LateAnswer('Internal error', { code: -32_603 }),
  limited: new LateAnswer('too many requests', { status: 429 }),
  walled: new LateAnswer('forbidden', { status: 403 }),
  choosy: new LateAnswer('insufficient fees; got: 1utia required: 2utia: insufficient fee', {}),
}

export async function startLoopbackNode(
  options: { readonly chainId?: string; readonly token?: string; readonly blockMs?: number } = {},
): Promise<LoopbackNode> {
  const { chainId = 'private', token, blockMs = 100 } = options
  const blocks: CelestiaBlock[] = []
  const counts = new Map<string, number>()
  const taken: RawBlob[] = []
  let [behaviour, tail]: [Behaviour, number] = ['honest', 1]
  let waiting: {
    readonly blob: RawBlob
    readonly from: number
    readonly done: (height: number) => void
  }[] = []
  const mine = (extra: readonly RawBlob[] = []) => {
    const height = blocks.length + 1
    const ready = waiting.filter(({ from }) => from <= height)
    waiting = waiting.filter(({ from }) => from > height)
    blocks.push(
      makeBlock({
        chainId,
        before: blocks.at(-1),
        blobs: [...extra, ...ready.map(({ blob }) => blob)],
      }),
    )
    for (const { done } of ready) done(height)
  }
  mine()
  const timer = setInterval(mine, blockMs)
  const include = (blob: RawBlob, after = 0) =>
    new Promise<number>((done) => waiting.push({ blob, from: blocks.length + 1 + after, done }))
  const requireBlock = (height: number): CelestiaBlock => {
    if (height === 0) throw new Error('height is equal to 0')
    if (height < tail)
      throw new Error(`header: requested header (${height}) is below Tail (${tail})`)
    const block = blocks[height - 1]
    if (block === undefined)
      throw new Error(
        `header: given height is from the future: networkHeight: ${blocks.length}, requestedHeight: ${height}`,
      )
    return block
  }
  const describe = ({ header, hash, height }: CelestiaBlock) => {
    const shown = behaviour === 'lying' ? { ...header, app_hash: 'AB'.repeat(32) } : header
    return {
      header: shown,
      commit: { height: String(height), block_id: { hash } },
      validator_set: {},
      dah: {},
    }
  }
  const find = ([height, namespace, commitment]: Json) => {
    const { square } = requireBlock(height)
    const found = square.blobs.find(
      (one) =>
        encodeBase64(one.namespace) === namespace && encodeBase64(one.commitment) === commitment,
    )
    if (found === undefined) throw new Error('blob: not found')
    return { square, found }
  }
  const submit = async (blob: RawBlob): Promise<number> => {
    requireBlobNamespace(blob.namespace)
    if (blob.data.length > 8_000_000) throw new Error('tx too large')
    switch (behaviour) {
      case 'poor':
        throw new Error('failed to submit blobs due to insufficient estimated gas price')
      case 'dear':
        throw new Error('state: estimated gas price exceeds max gas price in tx config')
      case 'mismatch':
        throw new Error('account sequence mismatch, expected 7, got 6: incorrect account sequence')
      case 'tardy':
        void include(blob, tardyBlocks)
        throw new Error('timed out waiting for tx to be included in a block')
      case 'forgetful':
        throw new Error('timed out waiting for tx to be included in a block')
      case 'misplacing':
        return (await include(blob)) - 1
      case 'boasting':
        return (await include(blob)) + 1e6
      case 'heightless':
        return (await include(blob)) * 0
      default:
        return include(blob)
    }
  }
  const takeBlob = async (blob: RawBlob): Promise<number> => {
    const late = lateAnswers[behaviour]
    const height = await submit(blob)
    taken.push(blob)
    if (late !== undefined) throw late
    return height
  }
  const methods: Readonly<Record<string, (params: Json) => unknown>> = {
    'header.NetworkHead': () => {
      const head = requireBlock(blocks.length)
      if (!behaviour.startsWith('vain')) return describe(head)
      const header = { ...head.header, height: String(vainHeight) }
      const hash = formatBlockHash(hashHeader(header))
      return describe({ ...head, header, hash, height: vainHeight })
    },
    'header.Tail': () => describe(requireBlock(tail)),
    'header.GetByHeight': ([height]) => describe(requireBlock(height)),
    'blob.GetAll': ([height, namespaces]) => {
      const { blobs } = requireBlock(height).square
      const found = blobs.filter(({ namespace }) => namespaces.includes(encodeBase64(namespace)))
      return found.length === 0 ? null : found.map(showBlob)
    },
    'blob.Get': (params) => showBlob(find(params).found),
    'blob.GetCommitmentProof': (params) => {
      const { square, found } = find(params)
      if (behaviour === 'garbling') return { version: 2, root: 'x' }
      if (behaviour !== 'forging') return square.prove(found)
      const other = square.blobs.find((one) => one !== found) ?? {
        ...found,
        start: found.start + 1,
      }
      return square.prove(other)
    },
    'blob.Submit': async ([blobs]) =>
      takeBlob({ namespace: decodeBase64(blobs[0].namespace), data: decodeBase64(blobs[0].data) }),
    'state.SubmitPayForBlob': async ([blobs]) => {
      const [{ namespace_id, namespace_version, data }] = blobs
      const namespace = Uint8Array.of(namespace_version, ...decodeBase64(namespace_id))
      const height = await takeBlob({ namespace, data: decodeBase64(data) })
      const txhash = createHash('sha256').update(`${height} ${data}`).digest('hex').toUpperCase()
      return { height, txhash, logs: null, events: null }
    },
  }
  const server = createServer(async (request, reply) => {
    if (behaviour === 'hang') return
    if (behaviour === 'busy') return reply.writeHead(429).end('too many requests')
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    const { id, method, params }: Json = JSON.parse(Buffer.concat(parts).toString())
    counts.set(method, (counts.get(method) ?? 0) + 1)
    const { authorization } = request.headers
    const send = (answer: object) => {
      reply.setHeader('content-type', 'application/json')
      reply.end(JSON.stringify({ jsonrpc: '2.0', id, ...answer }))
    }
    const refuse = (code: number, message: string) => send({ error: { code, message } })
    if (authorization !== undefined && authorization !== `Bearer ${token}`)
      return reply.writeHead(401).end()
    if (token !== undefined && authorization === undefined)
      return refuse(1, `missing permission to invoke '${method}' (need 'read')`)
    const call = behaviour === 'plain' && method.startsWith('state.') ? undefined : methods[method]
    if (call === undefined) return refuse(-32_601, `method '${method}' not found`)
    const isMute = behaviour.endsWith('mute') && /submit/i.test(method)
    if (behaviour === 'deaf' && method !== 'header.NetworkHead') return request.socket.destroy()
    if (behaviour === 'silent' && method.startsWith('blob.'))
      return reply.end('{"message":"try again"}')
    try {
      const result = await call(params)
      if (isMute) return request.socket.destroy()
      send({ result })
    } catch (error) {
      if (error instanceof LateAnswer) {
        if (error.status !== 200) return reply.writeHead(error.status).end(error.message)
        return refuse(error.code, error.message)
      }
      refuse(1, error instanceof Error ? error.message : String(error))
    }
  })
  const port = await listen(server, 0)
  const pause = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  return {
    url: `http://127.0.0.1:${port}`,
    chainId,
    behave: (next) => {
      behaviour = next
      if (next !== 'hang') server.closeIdleConnections()
    },
    mine: (count, blobs) => {
      for (let at = 0; at < count; at++) mine(at === 0 ? blobs : [])
    },
    prune: (below) => {
      tail = below
    },
    blocks: () => blocks,
    taken: () => taken,
    calls: (method) => counts.get(method) ?? 0,
    pause,
    resume: async () => {
      await listen(server, port)
    },
    stop: async () => {
      clearInterval(timer)
      await pause()
    },
  }
}

function showBlob({ namespace, data }: RawBlob) {
  return {
    namespace: encodeBase64(namespace),
    data: encodeBase64(data),
    share_version: 0,
    commitment: encodeBase64(computeCommitment(namespace, data)),
    index: 0,
  }
}

function makeBlock({
  chainId,
  before,
  blobs,
}: {
  readonly chainId: string
  readonly before: CelestiaBlock | undefined
  readonly blobs: readonly RawBlob[]
}): CelestiaBlock {
  const square = buildSquare(blobs)
  const height = (before?.height ?? 0) + 1
  const hash = (text: string) => createHash('sha256').update(text).digest('hex').toUpperCase()
  const header: CelestiaHeader = {
    version: { block: '11', app: '9' },
    chain_id: chainId,
    height: String(height),
    // A clock with nanoseconds, without zeros at their end.
    time: new Date().toISOString().replace('Z', '000001Z'),
    last_block_id: {
      hash: before?.hash ?? '',
      parts: {
        total: before === undefined ? 0 : 1,
        hash: before === undefined ? '' : hash('parts'),
      },
    },
    last_commit_hash: hash('commit'),
    data_hash: Buffer.from(square.dataRoot).toString('hex').toUpperCase(),
    validators_hash: hash('validators'),
    next_validators_hash: hash('validators'),
    consensus_hash: hash('consensus'),
    app_hash: hash(`application ${height}`),
    last_results_hash: hash('results'),
    evidence_hash: hash('evidence'),
    proposer_address: hash('proposer').slice(0, 40),
  }
  return { height, hash: formatBlockHash(hashHeader(header)), header, square }
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('there is a port')
  return address.port
}
