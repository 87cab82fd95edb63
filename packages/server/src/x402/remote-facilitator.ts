import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import type { World } from '../base/world.ts'
import { isUsed, paidBy, statedByToken, whereUsed } from './authorization-use.ts'
import { receiptOf } from './evm-chain.ts'
import {
  checkTerms,
  type Due,
  type Facilitator,
  isExpired,
  isForItsEnd,
  nowSeconds,
  type Settlement,
  type Verification,
} from './facilitator.ts'
import { bytesOf, isHash } from './hex.ts'
import { postJson, TransportError } from './http-json.ts'
import { acceptsEntry } from './protocol.ts'
import { isRecord, type Rpc, unreachable } from './rpc.ts'
import type { PaymentLog } from './sender.ts'
import { recoverSigner, transferDigest } from './signature.ts'

export type RemoteFacilitatorOptions = {
  /** Where /verify and /settle are. */
  readonly url: string
  readonly world: World
  readonly log: PaymentLog
  /** Headers of every request, such as an authorization that the facilitator wants. */
  readonly headers?: Readonly<Record<string, string>>
  /** With a node of the chain, a settlement counts only once the chain shows it. */
  readonly rpc?: Rpc
  readonly verifyTimeoutMs?: number
  readonly settleTimeoutMs?: number
}

const verifyTimeoutMsDefault = 10_000
const settleTimeoutMsDefault = 60_000
const answerBytesMax = 64 * 1024
const reasonCharsMax = 200

type Remote = RemoteFacilitatorOptions & {
  readonly ask: (
    action: 'verify' | 'settle',
    due: Due,
  ) => Promise<Readonly<Record<string, unknown>>>
}

/**
 * Checks and executes payments through an x402 facilitator over HTTP. What can be checked here is
 * checked here; of its answers only those count that fit the payment in every field.
 */
export function remoteFacilitator(options: RemoteFacilitatorOptions): Facilitator {
  const remote: Remote = { ...options, ask: caller(options) }
  return {
    verify: (payment, requirement) => verify(remote, { payment, requirement }),
    findUse: (payment, requirement) => findUse(remote, { payment, requirement }),
    settle: (id, payment, requirement) => settle(remote, id, { payment, requirement }),
    lookup: (id, payment, requirement) => lookup(remote, id, { payment, requirement }),
  }
}

async function verify(remote: Remote, due: Due): Promise<Verification> {
  const { payment, requirement } = due
  const { payload } = payment
  const terms = checkTerms(payment, requirement, nowSeconds(remote.world))
  if (!terms.ok && !isForItsEnd(terms)) return terms
  const digest = transferDigest(requirement.network, payload)
  if (recoverSigner(digest, bytesOf(payload.signature)) !== payload.from) {
    return { ok: false, reason: 'invalid_signature', field: 'payload.signature' }
  }
  if (!terms.ok) return verifyUsed(remote, due, terms)
  let answer: Readonly<Record<string, unknown>>
  let used: boolean | undefined
  try {
    ;[answer, used] = await Promise.all([remote.ask('verify', due), usedOnChain(remote, due)])
  } catch (error) {
    throw unreachable(error)
  }
  if (used === true) return { ok: false, reason: 'authorization_used' }
  if (typeof answer.isValid !== 'boolean' || !fits(answer.payer, payload.from)) {
    throw unreachable(new TransportError('the facilitator gave no verdict on this payment'))
  }
  if (answer.isValid) return { ok: true }
  const detail = reasonOf(answer.invalidReason)
  // The chain knows better, where there is a node to ask.
  const isSaid = used === undefined && namesUsedNonce(detail)
  return { ok: false, reason: isSaid ? 'authorization_used' : 'refused_by_facilitator', detail }
}

/** What an authorization that is refused for its end has moved already is here, if a node can tell. */
async function verifyUsed(remote: Remote, due: Due, refusal: Verification): Promise<Verification> {
  try {
    return (await usedOnChain(remote, due)) ? { ok: false, reason: 'authorization_used' } : refusal
  } catch (error) {
    throw unreachable(error)
  }
}

/** Without a node nothing is found: the facilitator's word that a nonce is used tells of no transfer. */
async function findUse(remote: Remote, due: Due): Promise<Settlement> {
  const { rpc, world, log } = remote
  if (rpc === undefined) return { state: 'failed', reason: 'use_not_found', final: false }
  try {
    return await whereUsed({ rpc, world, confirm: (hash) => receiptOf(rpc, hash) }, due)
  } catch (error) {
    log.warn({ error }, 'the payment network did not tell by what a payment was made')
    return { state: 'pending', reason: 'network_unreachable' }
  }
}

async function settle(remote: Remote, id: string, due: Due): Promise<Settlement> {
  let answer: Readonly<Record<string, unknown>>
  try {
    answer = await remote.ask('settle', due)
  } catch (error) {
    remote.log.warn({ id, error }, 'the facilitator did not tell what became of a settlement')
    return { state: 'pending', reason: 'facilitator_silent' }
  }
  return judge(remote, due, answer)
}

/** The chain knows best; without a node of it only the facilitator can be asked again. */
async function lookup(remote: Remote, id: string, due: Due): Promise<Settlement> {
  if (remote.rpc === undefined) return settle(remote, id, due)
  try {
    // A settlement that we gave up waiting for may still be on its way.
    return (await stated(remote, due)) ?? { state: 'pending', reason: 'not_seen' }
  } catch (error) {
    remote.log.warn({ id, error }, 'the payment network did not tell what became of a payment')
    return { state: 'pending', reason: 'network_unreachable' }
  }
}

async function judge(
  remote: Remote,
  due: Due,
  answer: Readonly<Record<string, unknown>>,
): Promise<Settlement> {
  const { network } = due.requirement
  const { payload } = due.payment
  const transaction = typeof answer.transaction === 'string' ? answer.transaction.toLowerCase() : ''
  const named = isHash(transaction) ? { transaction } : {}
  if (answer.success === true) {
    const sound =
      isHash(transaction) && fits(answer.payer, payload.from) && fits(answer.network, network.id)
    if (!sound) {
      remote.log.warn({ answer }, 'the facilitator claims a settlement that does not fit')
      return { state: 'pending', ...named, reason: 'facilitator_contradicts_itself' }
    }
    if (remote.rpc === undefined) return { state: 'settled', transaction }
    return confirm(remote, due, transaction)
  }
  if (answer.success !== false) return { state: 'pending', ...named, reason: 'facilitator_unclear' }
  const reason = reasonOf(answer.errorReason)
  // A named transaction, or a nonce that is used, may be this very payment.
  if (isHash(transaction) || /pending/i.test(reason) || namesUsedNonce(reason)) {
    const known = await stated(remote, due).catch(() => undefined)
    return known ?? { state: 'pending', ...named, reason }
  }
  return { state: 'failed', reason, final: isExpired(remote.world, payload) }
}

async function confirm(remote: Remote, due: Due, transaction: string): Promise<Settlement> {
  const unseen = { state: 'pending', transaction, reason: 'not_seen' } as const
  try {
    const receipt = remote.rpc && (await receiptOf(remote.rpc, transaction))
    const settlement = receipt?.succeeded === true ? paidBy(receipt, due) : undefined
    if (settlement?.state === 'settled') return settlement
    // The transaction is another one, or not in a block yet; the token knows about this payment.
    return (await stated(remote, due)) ?? unseen
  } catch {
    return unseen
  }
}

/** Undefined where there is no node to ask. */
async function usedOnChain(remote: Remote, due: Due): Promise<boolean | undefined> {
  if (remote.rpc === undefined) return undefined
  return isUsed(remote.rpc, due.requirement.network, due.payment.payload)
}

/** Undefined while the authorization is open, or where no node can be asked. */
async function stated(remote: Remote, due: Due): Promise<Settlement | undefined> {
  const { rpc, world } = remote
  if (rpc === undefined) return undefined
  return statedByToken({ rpc, world, confirm: (hash) => receiptOf(rpc, hash) }, due)
}

function caller(options: RemoteFacilitatorOptions): Remote['ask'] {
  const base = new URL(options.url.endsWith('/') ? options.url : `${options.url}/`)
  const agent = new (base.protocol === 'https:' ? SecureAgent : Agent)({ keepAlive: true })
  return async (action, due) => {
    const { status, value } = await postJson({
      url: new URL(action, base),
      agent,
      body: facilitatorRequest(due),
      world: options.world,
      deadlineMs:
        action === 'verify'
          ? (options.verifyTimeoutMs ?? verifyTimeoutMsDefault)
          : (options.settleTimeoutMs ?? settleTimeoutMsDefault),
      responseBytesMax: answerBytesMax,
      ...(options.headers === undefined ? {} : { headers: options.headers }),
      repeatable: action === 'verify',
    })
    // Facilitators refuse with 200 or 4xx and the same body; anything else says nothing.
    const meant = status === 200 || (status >= 400 && status < 500 && status !== 429)
    if (!meant || !isRecord(value)) throw new TransportError(`the facilitator answered ${status}`)
    return value
  }
}

/** Always version 2: the payload is the same in both, and version 1 loses the hash of a slow settlement. */
function facilitatorRequest({ payment, requirement }: Due): object {
  const { signature, from, to, value, validAfter, validBefore, nonce } = payment.payload
  const accepted = acceptsEntry(requirement)
  const authorization = {
    from,
    to,
    value: value.toString(),
    validAfter: validAfter.toString(),
    validBefore: validBefore.toString(),
    nonce,
  }
  return {
    x402Version: 2,
    paymentPayload: { x402Version: 2, accepted, payload: { signature, authorization } },
    paymentRequirements: accepted,
  }
}

/** A field that the facilitator may leave out, but not state differently. */
function fits(given: unknown, expected: string): boolean {
  if (given === undefined || given === null || given === '') return true
  return typeof given === 'string' && given.toLowerCase() === expected
}

/** Facilitators word this differently; whether it was used for this payment is for lookup to find out. */
function namesUsedNonce(reason: string): boolean {
  return /nonce|already|(^|[^a-z])used/i.test(reason)
}

function reasonOf(given: unknown): string {
  return typeof given === 'string' && given !== '' ? given.slice(0, reasonCharsMax) : 'no_reason'
}
