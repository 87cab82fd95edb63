import { limits } from '@tollbase/contract/limits'
import { concatInTurns } from '../../../base/concat-in-turns.ts'
import { isRecord } from '../../../base/is-record.ts'
import { listKeptInTurns, removeMembers } from '../../../base/json-text.ts'
import type { RequestInfo } from '../../../http/request-info.ts'
import { findNetworkId } from '../../../x402/networks.ts'
import { parseNativeProof } from '../../../x402/payment-header.ts'
import type { NativeProof } from '../../../x402/protocol.ts'

/** Returns the body without the proof of payment that was put into it. */
export function getBodyWithoutProof(requestInfo: RequestInfo): Buffer {
  if (!hasProofMember(requestInfo)) return requestInfo.bodyBytes
  const known = cutBodies.get(requestInfo)
  if (known !== undefined) return known
  const { length, cut } = requestInfo.json().source
  const without = Buffer.from(removeMembers(cut(0, length), proofMembers))
  cutBodies.set(requestInfo, without)
  return without
}

/** Cuts a long body for `getBodyWithoutProof`, and yields to other requests in between. */
export async function removeProofInTurns(requestInfo: RequestInfo): Promise<void> {
  const { bodyBytes } = requestInfo
  if (bodyBytes.length <= limits.bodyBytesAtOnce || !hasProofMember(requestInfo)) return
  const { source } = requestInfo.json()
  // Offsets in a short text beyond ASCII are not those of its bytes.
  if (source.length !== bodyBytes.length) return
  const kept = await listKeptInTurns(source, proofMembers)
  const parts = kept.map(({ from, to }) => bodyBytes.subarray(from, to))
  cutBodies.set(requestInfo, await concatInTurns(parts))
}

function hasProofMember(requestInfo: RequestInfo): boolean {
  const body = getBodyMembers(requestInfo)
  return proofMembers.some((name) => Object.hasOwn(body, name))
}

/** Long bodies take a while to cut, and several parts of a sale ask for the same one. */
const cutBodies = new WeakMap<RequestInfo, Buffer>()

/** All that the public clients put into the body of a paid store; none of it is stored. */
export const proofMembers: readonly string[] = [
  'payment_tx_hash',
  'amount_utia',
  'user_address',
  'broker_address',
  'payment_network',
  'payment_mode',
  'quote_id',
  'quoteId',
]

/** Finds the proof in the body. The body also states the amount and the payee, but the chain knows them better. */
export function findBodyProof(requestInfo: RequestInfo): NativeProof | undefined {
  const body = getBodyMembers(requestInfo)
  const transaction = getMemberText(body, 'payment_tx_hash')
  if (transaction === '') return undefined
  const quoteId = getMemberText(body, 'quote_id') || getMemberText(body, 'quoteId')
  return parseNativeProof({
    network: findNetworkId(getMemberText(body, 'payment_network')),
    quoteId,
    transaction,
    sender: getMemberText(body, 'user_address'),
    names: { transaction: 'payment_tx_hash', sender: 'user_address' },
  })
}

type Members = Readonly<Record<string, unknown>>

/**
 * Members of a body that may carry a proof. Only a store's and an upload's may: all others say what is asked, and
 * nothing else.
 */
function getBodyMembers(requestInfo: RequestInfo): Members {
  const isStore = requestInfo.method === 'POST' && requestInfo.path === '/store'
  if (!isStore && requestInfo.upload === undefined) return {}
  const { value } = requestInfo.json()
  return isRecord(value) ? value : {}
}

/** Clients write '' or null for what they do not have. */
function getMemberText(body: Members, name: string): string {
  const value = Object.hasOwn(body, name) ? body[name] : undefined
  return typeof value === 'string' ? value : ''
}
