import type { World } from '../base/world.ts'
import {
  type Attempt,
  isDead,
  isInVain,
  isJoint,
  isLeftOut,
  isReverted,
  isUndecided,
} from './attempt.ts'
import {
  type Evidence,
  findTokenOutcome,
  isUsed,
  judgeReceipt,
  readBalance,
  readUseOutcome,
} from './authorization-use.ts'
import { checkTerms, isForItsEnd, isSigned } from './check-exact-payment.ts'
import { simulate } from './evm-chain.ts'
import type { Facilitator, PaymentDue, Settlement, Verification } from './facilitator.ts'
import { Failures, failedBefore, type PayerVerdict } from './failures.ts'
import { Joints } from './joints.ts'
import { type Journaled, listHashes } from './journal.ts'
import { LogSearch } from './log-search.ts'
import type { PaymentNetwork } from './networks.ts'
import { makePaymentsUnderWay, type PaymentsUnderWay } from './payments-under-way.ts'
import type { Requirement, SignedPayment } from './protocol.ts'
import { ReceiptReader } from './receipt-reader.ts'
import type { Rpc } from './rpc.ts'
import type { JournaledSender, PaymentLog } from './sender.ts'
import { encodeTransferCall, transferGas } from './token.ts'
import { TransactionReceipts } from './transaction-receipts.ts'
import type { SaidUse } from './use-reader.ts'
import { getNowSeconds, isTooLate } from './validity.ts'

export type EvmFacilitatorOptions = {
  readonly rpc: Rpc
  readonly network: PaymentNetwork
  /** The sender that pays the gas; already started. */
  readonly sender: JournaledSender
  readonly world: World
  readonly log: PaymentLog
  /** The number of blocks that must hold or follow a settlement; 1 is its own. */
  readonly confirmations?: number
  readonly pollMs?: number
  /** The time that settle waits for the block before it answers pending. */
  readonly settleTimeoutMs?: number
  /** Those of all schemes of the network; its own where none are given. */
  readonly failures?: Failures
  /** The same. */
  readonly underWay?: PaymentsUnderWay
}

const pollMsDefault = 200
/** The time that a settlement waits for its block, and for its payer's others. */
export const settleTimeoutMs = 30_000

/** Checks and executes payments on the chain itself, with the service's own gas key. */
export function makeEvmFacilitator(options: EvmFacilitatorOptions): Facilitator {
  const { rpc, world, network, pollMs = pollMsDefault } = options
  const { confirmations = 1 } = options
  const receipts = new TransactionReceipts({ rpc, world, pollMs, confirmations })
  const reader = new ReceiptReader(rpc, network.asset.address, confirmations)
  const waitMs = options.settleTimeoutMs ?? settleTimeoutMs
  const underWay = options.underWay ?? makePaymentsUnderWay({ rpc, network, world, pollMs, waitMs })
  const failures = options.failures ?? new Failures({ rpc, world })
  const parts = {
    ...options,
    failures,
    receipts,
    underWay,
    joints: new Joints(options),
    search: new LogSearch(rpc),
    confirm: (hash: string, use: SaidUse) => reader.findUse(hash, use),
  }
  return {
    address: options.sender.address,
    verify: (payment, requirement) => verify(parts, payment, requirement),
    isUsed: ({ payload }, requirement) => isUsed(rpc, requirement.network, payload),
    findUse: (payment, requirement) => findUse(parts, { payment, requirement }),
    readFunds: ({ payload }, requirement) => readBalance(rpc, requirement.network, payload.from),
    awaitTurn: async ({ payload }, { unprovenMax }) =>
      (await underWay.enter(payload, { unprovenMax })) !== 'busy',
    settle: (id, payment, requirement) => settle(parts, id, { payment, requirement }),
    lookup: (id, payment, requirement) => lookup(parts, id, { payment, requirement }),
  }
}

type Parts = EvmFacilitatorOptions &
  Evidence & {
    readonly receipts: TransactionReceipts
    readonly underWay: PaymentsUnderWay
    readonly failures: Failures
    readonly joints: Joints
  }

async function verify(
  parts: Parts,
  payment: SignedPayment,
  requirement: Requirement,
): Promise<Verification> {
  const checked = checkTerms(payment, requirement, getNowSeconds(parts.world))
  if (!checked.ok && !isForItsEnd(checked)) return checked
  const { payload } = payment
  const { network } = requirement
  if (!isSigned(payment, requirement)) {
    return { ok: false, reason: 'invalid_signature', field: 'payload.signature' }
  }
  const { rpc, sender, underWay, failures } = parts
  // The money that it moved already is here.
  if (!checked.ok) return (await isUsed(rpc, network, payload)) ? usedBefore : checked
  if (failures.isOver(payload.from))
    return (await isUsed(rpc, network, payload)) ? usedBefore : failedBefore
  underWay.look(payload)
  const [simulation, used] = await Promise.all([
    simulate(rpc, {
      from: sender.address,
      to: network.asset.address,
      data: encodeTransferCall(payload),
    }),
    // Some tokens accept a used authorization, and move nothing.
    isUsed(rpc, network, payload),
    sender.requireFunds(transferGas),
  ])
  if (used) return usedBefore
  return simulation.ok ? { ok: true } : explain(parts, { payment, requirement }, simulation.reason)
}

const usedBefore: Verification = {
  ok: false,
  reason: 'authorization_used',
  field: 'payload.authorization.nonce',
}

/** Explains a refusal by the state, which reads the same for all tokens; their messages differ. */
async function explain(parts: Parts, due: PaymentDue, detail: string): Promise<Verification> {
  const { payload } = due.payment
  const { network } = due.requirement
  const balance = await readBalance(parts.rpc, network, payload.from)
  if (balance < payload.value) return { ok: false, reason: 'insufficient_balance', detail }
  return { ok: false, reason: 'simulation_failed', detail }
}

async function findUse(parts: Parts, due: PaymentDue): Promise<Settlement> {
  try {
    return await readUseOutcome(parts, due)
  } catch (error) {
    parts.log.warn({ error }, 'the payment network did not tell by what a payment was made')
    return { state: 'pending', reason: 'network_unreachable' }
  }
}

/**
 * Sends the transfer that the payer signed, and waits for its block. The sender has the transaction of this id in its
 * journal before it goes out, and sends no second one. With `joins` it may be a part of a joint transaction, which costs
 * less gas and may leave it out.
 */
async function settle(parts: Parts, id: string, due: PaymentDue): Promise<Settlement> {
  const { sender, log } = parts
  let attempt: Attempt
  try {
    // It was verified when it was claimed, which may be long ago.
    const verdict = await allowSending(parts, id, due)
    if (isRefusal(verdict) && (await sender.find(id)) === undefined)
      return await explainNotSent(parts, id, { due, why: verdict })
    const isFree = verdict === 'plain' && due.requirement.isAlone !== true
    const joins = isFree && (await parts.joints.areAllowed())
    const sent = await sender.send({ id, ...makeCall(due), joins })
    attempt = await follow(parts, { id, journaled: sent }, parts.settleTimeoutMs)
    if (isLeftOut(attempt, due)) attempt = await sendAlone(parts, due, { ...attempt, joint: sent })
  } catch (error) {
    // The transaction may be in the journal, and may go out later.
    log.warn({ id, error }, 'a settlement was not sent')
    return { state: 'pending', reason: 'not_sent' }
  }
  return conclude(parts, due, attempt)
}

function makeCall({ payment, requirement }: PaymentDue) {
  const { address: to } = requirement.network.asset
  return { to, data: encodeTransferCall(payment.payload), gas: transferGas }
}

/** Waits for the block of a payment's transaction, and tells the sender of it. */
async function follow(
  { sender, receipts }: Parts,
  { id, journaled }: Pick<Attempt, 'id' | 'journaled'>,
  timeoutMs = settleTimeoutMs,
): Promise<Attempt> {
  if (journaled === undefined || isDead(journaled)) return { id, journaled, receipt: undefined }
  const receipt = await receipts.wait(listHashes(journaled), timeoutMs)
  if (receipt !== undefined) {
    const state = receipt.succeeded ? 'mined' : 'reverted'
    sender.note({ id: journaled.id, state, blockNumber: receipt.blockNumber })
  }
  return { id, journaled, receipt }
}

/**
 * Sends a payment once more, by itself, where the joint transaction that had it did not make it: another part of it used up
 * the gas, or left too little. One that has no chance any more, or whose wallet may be the one that did it, is not sent
 * again.
 */
async function sendAlone(
  parts: Parts,
  due: PaymentDue,
  attempt: Attempt & { readonly joint: Journaled },
): Promise<Attempt> {
  const { rpc, sender, joints } = parts
  const { id, joint } = attempt
  const isWhole = isReverted(attempt)
  if (isWhole) joints.pause(joint)
  const { network } = due.requirement
  const call = makeCall(due)
  const verdict = await allowSending(parts, id, due)
  if (verdict !== 'plain' || (await isUsed(rpc, network, due.payment.payload))) return attempt
  const { to, data } = call
  if (!(await simulate(rpc, { from: sender.address, to, data })).ok) return attempt
  if (!isWhole) joints.pause(joint)
  const journaled = await sender.send({ id, ...call, leftOutOf: joint.id })
  return follow(parts, { id, journaled }, parts.settleTimeoutMs)
}

type NotSent = 'late' | 'short' | 'busy' | 'failed before'
type MaySend = Exclude<PayerVerdict, 'refused'>

function isRefusal(verdict: NotSent | MaySend): verdict is NotSent {
  return verdict !== 'plain' && verdict !== 'allowed'
}

/**
 * Decides whether a payment may be sent for the first time. A transaction of an earlier try needs none of it: the payer's
 * balance has it deducted already.
 */
async function allowSending(
  { underWay, failures, world }: Parts,
  id: string,
  { payment: { payload }, requirement: { unprovenMax } }: PaymentDue,
): Promise<NotSent | MaySend> {
  if (isTooLate(payload, getNowSeconds(world))) return 'late'
  const entered = await underWay.enter(payload, { unprovenMax })
  if (entered !== 'entered') return entered
  const verdict = await failures.allow(payload.from, id)
  return verdict === 'refused' ? 'failed before' : verdict
}

/**
 * Returns the outcome of a payment that was not sent because its payer's balance does not cover all that the payer has
 * signed: it would revert on our gas.
 */
async function explainNotSent(
  parts: Parts,
  id: string,
  { due, why }: { due: PaymentDue; why: NotSent },
): Promise<Settlement> {
  if (why === 'busy')
    return { state: 'pending', reason: 'payer_has_others_under_way', isUnsent: true }
  // If somebody else has executed it, the balance is already reduced.
  const outcome = await lookup(parts, id, due)
  const isOpen = outcome.state === 'failed' && outcome.reason === 'not_sent'
  return isOpen ? { ...outcome, reason: reasons[why] } : outcome
}

const reasons = {
  late: 'expired',
  short: 'insufficient_balance',
  'failed before': 'failed_before',
} as const

async function lookup(parts: Parts, id: string, due: PaymentDue): Promise<Settlement> {
  const journaled = await parts.sender.find(id)
  return conclude(parts, due, await follow(parts, { id, journaled }, 0))
}

async function conclude(parts: Parts, due: PaymentDue, attempt: Attempt): Promise<Settlement> {
  const outcome = await decideOutcome(parts, due, attempt)
  if (outcome.state === 'pending' && outcome.usedIn === undefined) return outcome
  const { payload } = due.payment
  parts.underWay.leave(payload, outcome.state === 'settled' ? 'made' : 'not made')
  const { id, journaled, receipt } = attempt
  const wasInVain = outcome.state === 'failed' && isInVain(attempt)
  if (journaled !== undefined && wasInVain)
    parts.failures.noteFailed(payload.from, id, Number(journaled.createdAtMs))
  else if (journaled !== undefined) parts.failures.noteHarmless(payload.from, id)
  // Whoever used it in another transaction paid more gas than it cost us.
  if (outcome.state === 'pending') return outcome
  // A joint transaction costs less for each payment than its own would.
  const gas = isJoint(journaled) ? undefined : receipt?.gas
  const isOnItsWay = outcome.state === 'failed' && isUndecided(attempt)
  return {
    ...outcome,
    ...(gas !== undefined && { gas }),
    ...(wasInVain && { wasInVain }),
    ...(isOnItsWay && { isOnItsWay }),
  }
}

/** Decides the outcome, for fresh settlements and reconciled ones alike. */
async function decideOutcome(parts: Parts, due: PaymentDue, attempt: Attempt): Promise<Settlement> {
  const { journaled, receipt } = attempt
  // A token that does not revert on a used nonce succeeds without paying; somebody else may have paid.
  const settlement = receipt?.succeeded === true ? judgeReceipt(receipt, due) : undefined
  if (settlement?.state === 'settled') return settlement
  const transaction = journaled === undefined ? {} : { transaction: journaled.hash }
  let stated: Settlement | undefined
  try {
    stated = await findTokenOutcome(parts, due)
  } catch (error) {
    parts.log.warn({ error }, 'the payment network did not tell what became of a payment')
    return { state: 'pending', ...transaction, reason: 'network_unreachable' }
  }
  const unseen = stated?.state === 'pending' && stated.reason === 'use_not_found'
  // A joint transaction succeeds whatever became of its parts.
  const isMade = receipt?.succeeded === true && !isJoint(journaled)
  if (isMade && (stated === undefined || unseen)) {
    return { state: 'failed', reason: 'no_transfer', final: true }
  }
  if (stated !== undefined) return stated
  if (journaled === undefined) return { state: 'failed', reason: 'not_sent', final: false }
  if (receipt === undefined && !isDead(journaled)) {
    return { state: 'pending', ...transaction, reason: 'not_confirmed' }
  }
  return { state: 'failed', reason: 'transaction_reverted', final: false }
}
