import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { decodeBase64, encodeBase64, FormatError } from '@tollbase/verify/bytes'
import {
  type CommitmentProof,
  parseCommitmentProof,
} from '@tollbase/verify/celestia/commitment-proof'
import {
  type CelestiaHeader,
  formatBlockHash,
  hashHeader,
  parseHeader,
} from '@tollbase/verify/celestia/header'
import { parseCount, requireObject, requireText } from '@tollbase/verify/fields'
import { isRecord } from '../base/is-record.ts'
import type { World } from '../base/world.ts'
import { postJson, TransportError } from '../x402/http-json.ts'
import { NodeError, parseNodeError } from './node-errors.ts'

export type NodeOptions = {
  readonly url: string
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string | undefined
  readonly world: World
}

/** A block as its header tells, whose hash was computed from it. */
export type CelestiaBlock = {
  readonly height: number
  /** Upper-case hexadecimal. */
  readonly hash: string
  readonly header: CelestiaHeader
}

export type Blob = { readonly namespace: Uint8Array; readonly data: Uint8Array }

/** A blob that a block has. */
export type PlacedBlob = { readonly commitment: Uint8Array; readonly data: Uint8Array }

/** The place of a blob that the node has sent; the hash of the transaction is not known to each. */
export type Submitted = { readonly height: number; readonly transaction: string | null }

/**
 * A celestia-node, asked by JSON-RPC over HTTP. Each call throws a NodeError or a TransportError, and keeps to its
 * time.
 */
export type CelestiaNode = {
  readonly readNetworkHead: () => Promise<CelestiaBlock>
  readonly readBlock: (height: number) => Promise<CelestiaBlock>
  /** Reads the oldest height that the node has; undefined where it does not tell. */
  readonly findTailHeight: () => Promise<number | undefined>
  /**
   * Lists the blobs of a namespace in one block. Anybody can fill it: an answer above the limit throws AnswerTooLarge.
   */
  readonly listBlobs: (
    height: number,
    namespace: Uint8Array,
    limits: ListLimits,
  ) => Promise<PlacedBlob[]>
  readonly hasBlob: (place: CelestiaPlace) => Promise<boolean>
  readonly readCommitmentProof: (place: CelestiaPlace) => Promise<CommitmentProof>
  /** Sends a blob, and waits until a block has it. Where it throws anything but a refusal, the blob may be sent. */
  readonly submit: (blob: Blob, gasPriceMax: number | undefined) => Promise<Submitted>
  readonly close: () => void
}

export type CelestiaPlace = {
  readonly height: number
  readonly namespace: Uint8Array
  readonly commitment: Uint8Array
}

const readDeadlineMs = 20_000
/** Nodes wait for the block, and send again what was lost on the way. */
const submitDeadlineMs = 90_000
/** A header comes with the signatures of all validators and the roots of all rows. */
const answerBytesMax = 8 * 1024 * 1024
const socketsMax = 16
const unauthorized = 401
const namespaceVersionBytes = 1

export function openCelestiaNode({ url: address, token, world }: NodeOptions): CelestiaNode {
  const url = new URL(address)
  const isSecure = url.protocol === 'https:'
  const agent = new (isSecure ? SecureAgent : Agent)({ keepAlive: true, maxSockets: socketsMax })
  let isClosed = false
  const ask = async (method: string, params: readonly unknown[], limits: Partial<Limits> = {}) => {
    if (isClosed) throw new TransportError('the client is closed', { unsent: true })
    const { status, value } = await postJson({
      ...{ url, agent, world, repeatable: true, isClosed: () => isClosed },
      ...{ deadlineMs: readDeadlineMs, responseBytesMax: answerBytesMax, ...limits },
      headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
      body: { jsonrpc: '2.0', id: 1, method, params },
    })
    if (!isRecord(value) || status === unauthorized)
      throw new TransportError(`status ${status} without an answer to ${method}`)
    if (value.error !== undefined && value.error !== null) throw parseNodeError(value.error)
    // A gateway's text of its own says nothing of blobs: without this, it would say that a block has none.
    if (value.jsonrpc !== '2.0')
      throw new TransportError(`status ${status} without an answer to ${method}`)
    return value.result
  }
  const readBlock = async (method: string, params: readonly unknown[]) =>
    parseAnswer(method, await ask(method, params), parseBlock)
  const readCommitmentProof = async ({ height, namespace, commitment }: CelestiaPlace) => {
    const method = 'blob.GetCommitmentProof'
    const proof = await ask(method, [height, encodeBase64(namespace), encodeBase64(commitment)])
    return parseAnswer(method, proof, (value) => parseCommitmentProof(requireRecord(value)))
  }
  return {
    readNetworkHead: () => readBlock('header.NetworkHead', []),
    readBlock: (height) => readBlock('header.GetByHeight', [height]),
    findTailHeight: async () => {
      try {
        return (await readBlock('header.Tail', [])).height
      } catch (error) {
        if (error instanceof NodeError && error.isUnsupported) return undefined
        throw error
      }
    },
    listBlobs: async (height, namespace, limits) => {
      const blobs = await ask('blob.GetAll', [height, [encodeBase64(namespace)]], limits)
      return parseAnswer('blob.GetAll', blobs ?? [], parseBlobs)
    },
    hasBlob: async (place) => {
      try {
        await readCommitmentProof(place)
        return true
      } catch (error) {
        if (error instanceof NodeError && error.kind === 'missing') return false
        throw error
      }
    },
    readCommitmentProof,
    submit: (blob, gasPriceMax) => submit(ask, blob, gasPriceMax),
    close: () => {
      isClosed = true
      agent.destroy()
    },
  }
}

type Limits = {
  readonly deadlineMs: number
  readonly responseBytesMax: number
  readonly repeatable: boolean
}
/** The bytes that are read of a list, and the time that it may take where not as long as anything else. */
export type ListLimits = Pick<Limits, 'responseBytesMax'> & Partial<Pick<Limits, 'deadlineMs'>>
type Ask = (
  method: string,
  params: readonly unknown[],
  limits?: Partial<Limits>,
) => Promise<unknown>

/** Prefers the method that tells the hash of the transaction; the other one tells the height alone. */
async function submit(ask: Ask, blob: Blob, gasPriceMax: number | undefined): Promise<Submitted> {
  const { namespace, data: bytes } = blob
  const config = gasPriceMax === undefined ? {} : { max_gas_price: gasPriceMax }
  const [data, share_version] = [encodeBase64(bytes), 0]
  // A second sending would be a second blob, and cost again.
  const limits = { deadlineMs: submitDeadlineMs, repeatable: false }
  try {
    const namespace_id = encodeBase64(namespace.subarray(namespaceVersionBytes))
    const raw = { namespace_id, namespace_version: namespace[0], data, share_version }
    const method = 'state.SubmitPayForBlob'
    return parseAnswer(method, await ask(method, [[raw], config], limits), parseSubmitted)
  } catch (error) {
    if (!(error instanceof NodeError) || !error.isUnsupported) throw error
  }
  const plain = {
    namespace: encodeBase64(namespace),
    data,
    share_version,
    commitment: null,
    index: -1,
  }
  const height = await ask('blob.Submit', [[plain], config], limits)
  return parseAnswer('blob.Submit', height, (value) => ({
    height: parseCount(String(value), 'height'),
    transaction: null,
  }))
}

function parseSubmitted(value: unknown): Submitted {
  const { height, txhash, code = 0 } = requireRecord(value)
  if (code !== 0)
    throw new NodeError({ code: 0, message: `the transaction failed with code ${code}` })
  if (typeof txhash !== 'string' || !/^[0-9A-Fa-f]{64}$/.test(txhash))
    throw new FormatError('"txhash" must be the hash of a transaction')
  return { height: parseCount(String(height), 'height'), transaction: txhash.toUpperCase() }
}

/** Parses a block. The validators signed the hash in its commit; that it is ours says that we read all of the header. */
function parseBlock(value: unknown): CelestiaBlock {
  const block = requireRecord(value)
  const header = parseHeader(requireObject(block, 'header'))
  const hash = formatBlockHash(hashHeader(header))
  const signed = requireObject(requireObject(block, 'commit'), 'block_id')
  if (requireText(signed, 'hash') !== hash)
    throw new FormatError(`the header has the hash ${hash}, and its commit is for another`)
  return { height: parseCount(header.height, 'height'), hash, header }
}

function parseBlobs(value: unknown): PlacedBlob[] {
  if (!Array.isArray(value)) throw new FormatError('blobs must be a list')
  return value.map((one) => {
    const { commitment, data } = requireRecord(one)
    if (typeof commitment !== 'string' || typeof data !== 'string')
      throw new FormatError('a blob has a commitment and data')
    return { commitment: decodeBase64(commitment), data: Buffer.from(data, 'base64') }
  })
}

function requireRecord(value: unknown): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw new FormatError('it must be an object')
  return value
}

/** Parses an answer; one of another form is as good as none. */
function parseAnswer<T>(method: string, value: unknown, parse: (value: unknown) => T): T {
  try {
    return parse(value)
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    throw new TransportError(`the answer to ${method} cannot be read: ${error.message}`, {
      cause: error,
    })
  }
}
