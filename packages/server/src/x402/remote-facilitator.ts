import { Agent } from 'node:http'
import { Agent as SecureAgent } from 'node:https'
import { isRecord } from '../base/is-record.ts'
import type { World } from '../base/world.ts'
import {
  type Evidence,
  findTokenOutcome,
  isUsed,
  judgeReceipt,
  readBalance,
  readUseOutcome,
} from './authorization-use.ts'
import { checkTerms, isForItsEnd, isSigned } from './check-exact-payment.ts'
import type { Facilitator, PaymentDue, Settlement, Verification } from './facilitator.ts'
import { isHash } from './hex.ts'
import { postJson, TransportError } from './http-json.ts'
import { LogSearch } from './log-search.ts'
import type { PaymentNetwork } from './networks.ts'
import { buildAcceptsEntry } from './payment-required.ts'
import { ReceiptReader } from './receipt-reader.ts'
import { type Rpc, toUnreachable } from './rpc.ts'
import type { PaymentLog } from './sender.ts'
import type { SaidUse } from './use-reader.ts'
import { getNowSeconds, isExpired } from './validity.ts'

export type RemoteFacilitatorOptions = {
  /** The URL under which /verify and /settle are. */
  readonly url: string
  readonly network: PaymentNetwork
  readonly world: World
  readonly log: PaymentLog
  /** The headers of every request, such as an authorization that the facilitator requires. */
  readonly headers?: Readonly<Record<string, string>>
  /** A node of the chain; with it, a settlement counts only once the chain shows it. */
  readonly rpc?: Rpc
  readonly verifyTimeoutMs?: number
  readonly settleTimeoutMs?: number
}

const verifyTimeoutMsDefault = 10_000
const settleTimeoutMsDefault = 60_000
const answerBytesMax = 64 * 1024
const reasonCharsMax = 200

type Remote = RemoteFacilitatorOptions & {
  /** Undefined where there is no node. */
  readonly evidence: Evidence | undefined
  readonly ask: (
    action: 'verify' | 'settle',
    due: PaymentDue,
  ) => Promise<Readonly<Record<string, unknown>>>
}

/**
 * Checks and executes payments through an x402 facilitator over HTTP. Everything that can be checked locally is;
 * the facilitator's answer counts only if it fits the payment in every field.
 */
export function makeRemoteFacilitator(options: RemoteFacilitatorOptions): Facilitator {
  const { rpc, world, network } = options
  const reader = rpc && new ReceiptReader(rpc, network.asset.address)
  const evidence = rpc &&
    reader && {
      ...{ rpc, world, search: new LogSearch(rpc) },
      confirm: (hash: string, use: SaidUse) => reader.findUse(hash, use),
    }
  const remote: Remote = { ...options, evidence, ask: caller(options) }
  return {
    ...(rpc !== undefined && {
      readFunds: ({ payload }, requirement) => readBalance(rpc, requirement.network, payload.from),
    }),
    verify: (payment, requirement) => verify(remote, { payment, requirement }),
    isUsed: async (payment, requirement) =>
      (await usedOnChain(remote, { payment, requirement })) ?? false,
    findUse: (payment, requirement) => findUse(remote, { payment, requirement }),
    settle: (id, payment, requirement) => settle(remote, id, { payment, requirement }),
    lookup: (id, payment, requirement) => lookup(remote, id, { payment, requirement }),
  }
}

async function verify(remote: Remote, due: PaymentDue): Promise<Verification> {
  const { payment, requirement } = due
  const { payload } = payment
  const terms = checkTerms(payment, requirement, getNowSeconds(remote.world))
  if (!terms.ok && !isForItsEnd(terms)) return terms
  if (!isSigned(payment, requirement)) {
    return { ok: false, reason: 'invalid_signature', field: 'payload.signature' }
  }
  if (!terms.ok) return verifyUsed(remote, due, terms)
  let answer: Readonly<Record<string, unknown>>
  let used: boolean | undefined
  try {
    ;[answer, used] = await Promise.all([remote.ask('verify', due), usedOnChain(remote, due)])
  } catch (error) {
    throw toUnreachable(error)
  }
  if (used === true) return { ok: false, reason: 'authorization_used' }
  if (typeof answer.isValid !== 'boolean' || !fits(answer.payer, payload.from)) {
    throw toUnreachable(new TransportError('the facilitator gave no verdict on this payment'))
  }
  if (answer.isValid) return { ok: true }
  const detail = readReason(answer.invalidReason)
  // If there is a node, the chain decides.
  const isSaid = used === undefined && namesUsedNonce(detail)
  return { ok: false, reason: isSaid ? 'authorization_used' : 'refused_by_facilitator', detail }
}

/** An authorization that is refused because it has ended may have moved its money before: a node can tell. */
async function verifyUsed(
  remote: Remote,
  due: PaymentDue,
  refusal: Verification,
): Promise<Verification> {
  try {
    return (await usedOnChain(remote, due)) ? { ok: false, reason: 'authorization_used' } : refusal
  } catch (error) {
    throw toUnreachable(error)
  }
}

/** Without a node no use is found: the facilitator's word that a nonce is used tells of no transfer. */
async function findUse(remote: Remote, due: PaymentDue): Promise<Settlement> {
  const { evidence, log } = remote
  if (evidence === undefined) return { state: 'failed', reason: 'use_not_found', final: false }
  try {
    return await readUseOutcome(evidence, due)
  } catch (error) {
    log.warn({ error }, 'the payment network did not tell by what a payment was made')
    return { state: 'pending', reason: 'network_unreachable' }
  }
}

async function settle(remote: Remote, id: string, due: PaymentDue): Promise<Settlement> {
  let answer: Readonly<Record<string, unknown>>
  try {
    answer = await remote.ask('settle', due)
  } catch (error) {
    remote.log.warn({ id, error }, 'the facilitator did not tell what became of a settlement')
    return { state: 'pending', reason: 'facilitator_silent' }
  }
  return judge(remote, due, answer)
}

/** The chain decides; without a node of it only the facilitator can be asked again. */
async function lookup(remote: Remote, id: string, due: PaymentDue): Promise<Settlement> {
  if (remote.rpc === undefined) return settle(remote, id, due)
  try {
    // A settlement that we gave up waiting for may still be on its way.
    return (await findTokenState(remote, due)) ?? { state: 'pending', reason: 'not_seen' }
  } catch (error) {
    remote.log.warn({ id, error }, 'the payment network did not tell what became of a payment')
    return { state: 'pending', reason: 'network_unreachable' }
  }
}

async function judge(
  remote: Remote,
  due: PaymentDue,
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
  const reason = readReason(answer.errorReason)
  // A named transaction, or a nonce that is used, may be this very payment.
  if (isHash(transaction) || /pending/i.test(reason) || namesUsedNonce(reason)) {
    const known = await findTokenState(remote, due).catch(() => undefined)
    return known ?? { state: 'pending', ...named, reason }
  }
  const isOver = isExpired(remote.world, payload)
  if (!isOver || remote.rpc === undefined) return { state: 'failed', reason, final: isOver }
  // A block may still take it, whatever our clock says, where the chain is late.
  const stated = await findTokenState(remote, due).catch(() => undefined)
  return stated ?? { state: 'failed', reason, final: false }
}

async function confirm(remote: Remote, due: PaymentDue, transaction: string): Promise<Settlement> {
  const unseen = { state: 'pending', transaction, reason: 'not_seen' } as const
  try {
    const receipt = await remote.evidence?.confirm(transaction, due.payment.payload)
    const isRead = receipt !== undefined && receipt !== 'too large'
    const settlement = isRead && receipt.succeeded ? judgeReceipt(receipt, due) : undefined
    if (settlement?.state === 'settled') return settlement
    // The transaction is another one, or not in a block yet; the token's state decides.
    return (await findTokenState(remote, due)) ?? unseen
  } catch {
    return unseen
  }
}

/** Returns undefined if there is no node to ask. */
async function usedOnChain(remote: Remote, due: PaymentDue): Promise<boolean | undefined> {
  if (remote.rpc === undefined) return undefined
  return isUsed(remote.rpc, due.requirement.network, due.payment.payload)
}

/** Returns undefined while the authorization is open, or if there is no node to ask. */
async function findTokenState(remote: Remote, due: PaymentDue): Promise<Settlement | undefined> {
  return remote.evidence && findTokenOutcome(remote.evidence, due)
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
function facilitatorRequest({ payment, requirement }: PaymentDue): object {
  const { signature, from, to, value, validAfter, validBefore, nonce } = payment.payload
  const accepted = buildAcceptsEntry(requirement)
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

/** Checks a field that the facilitator may leave out, but not state differently. */
function fits(given: unknown, expected: string): boolean {
  if (given === undefined || given === null || given === '') return true
  return typeof given === 'string' && given.toLowerCase() === expected
}

/** Facilitators word this differently; `lookup` finds out whether it was used for this payment. */
function namesUsedNonce(reason: string): boolean {
  return /nonce|already|(^|[^a-z])used/i.test(reason)
}

function readReason(given: unknown): string {
  return typeof given === 'string' && given !== '' ? given.slice(0, reasonCharsMax) : 'no_reason'
}
