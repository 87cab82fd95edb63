import { isRecord } from '../base/is-record.ts'

/**
 * The meaning of a node's error. Nodes give one code to all of them, so the text decides:
 * - refused: no transaction was made, and a person or time must change something
 * - rejected: the network did not take the transaction. A node that tries again by itself may say so of the second one
 * - missing: the block has no such blob
 * - pruned: the node does not have blocks of that height any more
 * - future: the node does not have blocks of that height yet
 * - unknown: anything else, also where a blob may have been sent
 */
export type NodeErrorKind = 'refused' | 'rejected' | 'missing' | 'pruned' | 'future' | 'unknown'

/** The error of a node that answered with one. */
export class NodeError extends Error {
  override readonly name = 'NodeError'
  readonly code: number
  readonly kind: NodeErrorKind

  constructor({ code, message }: { readonly code: number; readonly message: string }) {
    super(message)
    this.code = code
    this.kind = classify(code, message)
  }

  /** True where the node does not offer the method, or takes other parameters. */
  get isUnsupported(): boolean {
    return this.code === methodNotFound || this.code === invalidParams
  }
}

const parseError = -32_700
const invalidRequest = -32_600
const methodNotFound = -32_601
const invalidParams = -32_602
/** Errors of JSON-RPC itself: the call did not begin. The internal error (-32603) can come at any time. */
const unbegun: ReadonlySet<number> = new Set([
  parseError,
  invalidRequest,
  methodNotFound,
  invalidParams,
])
const textCharsMax = 300

const kinds: readonly (readonly [RegExp, NodeErrorKind])[] = [
  [/blob: not found/i, 'missing'],
  [/is below tail|pruned/i, 'pruned'],
  [/from the future|syncing in progress|exceeds (?:network|local) head/i, 'future'],
  [
    /missing permission|not allowed namespace|account for signer|exceeds max gas price|no blobs provided/i,
    'refused',
  ],
  [/insufficient (?:\w+ )?(?:gas price|fees?\b|funds)|too large/i, 'rejected'],
]

function classify(code: number, message: string): NodeErrorKind {
  if (unbegun.has(code)) return 'refused'
  return kinds.find(([pattern]) => pattern.test(message))?.[1] ?? 'unknown'
}

/** Parses the error of an answer. */
export function parseNodeError(error: unknown): NodeError {
  // Some gateways give a text.
  const { code, message } = isRecord(error) ? error : { code: 0, message: error }
  return new NodeError({
    code: typeof code === 'number' ? code : 0,
    message:
      typeof message === 'string' ? message.slice(0, textCharsMax) : 'an error without a message',
  })
}
