import { chooseSmaller } from '../../base/bigint.ts'
import type { World } from '../../base/world.ts'
import { type Attempt, isDead } from '../attempt.ts'
import { findBlockPast, readBalance } from '../authorization-use.ts'
import { readCall, readCode, simulate } from '../evm-chain.ts'
import { settleTimeoutMs } from '../evm-facilitator.ts'
import type { Facilitator, Settlement, Verification } from '../facilitator.ts'
import { type Failures, failedBefore } from '../failures.ts'
import { type Journaled, listHashes } from '../journal.ts'
import type { PaymentNetwork } from '../networks.ts'
import type { PaymentsUnderWay } from '../payments-under-way.ts'
import type { Requirement, SignedPayment } from '../protocol.ts'
import type { Rpc } from '../rpc.ts'
import type { JournaledSender, PaymentLog } from '../sender.ts'
import { TransactionReceipts } from '../transaction-receipts.ts'
import { getNowSeconds, isTooLate } from '../validity.ts'
import { checkUptoPayment } from './check-upto-payment.ts'
import {
  findTaken,
  isNonceUsed,
  makeTakenEvidence,
  type TakenEvidence,
  type TakenUpto,
} from './find-taken.ts'
import {
  encodeAllowanceCall,
  encodeUptoCall,
  hasMoved,
  isPermitSigned,
  isUpto,
  type UptoPayment,
  uptoGas,
} from './upto.ts'
import { permit2Address, uptoProxyAddress } from './upto-terms.ts'

/** Takes payments of the scheme `upto`, by our key alone: nobody else can hand them in. */
export type UptoFacilitator = Facilitator & {
  /** The address of our key, which payers sign for. */
  readonly address: string
  /** Finds what was taken by a permit in a life of the database that is lost; undefined where nothing was. */
  readonly findTaken: (payment: UptoPayment) => Promise<TakenUpto | undefined>
}

export type UptoOptions = {
  readonly rpc: Rpc
  readonly network: PaymentNetwork
  /** Already started. */
  readonly sender: JournaledSender
  readonly world: World
  readonly log: PaymentLog
  readonly pollMs: number
  readonly confirmations: number
  readonly failures: Failures
  readonly underWay: PaymentsUnderWay
}

/** Finds the contracts of the scheme that a network lacks; undefined where they are there. */
export async function findMissingCode(rpc: Rpc): Promise<string | undefined> {
  const places = { Permit2: permit2Address, 'the upto proxy': uptoProxyAddress }
  for (const [name, address] of Object.entries(places))
    if ((await readCode(rpc, address)) === '0x') return `there is no code of ${name} at ${address}`
  return undefined
}

/** A payment's transaction, as far as it is known. */
type Tried = Pick<Attempt, 'journaled' | 'receipt'>

type Parts = UptoOptions & {
  readonly evidence: TakenEvidence
  readonly receipts: TransactionReceipts
}

export function makeUptoFacilitator(options: UptoOptions): UptoFacilitator {
  const { rpc, network, sender } = options
  const parts: Parts = {
    ...options,
    evidence: makeTakenEvidence(rpc),
    receipts: new TransactionReceipts(options),
  }
  return {
    address: sender.address,
    verify: (payment, requirement) => verify(parts, requireUpto(payment), requirement),
    // Nobody but us can use one.
    isUsed: async () => false,
    findTaken: async (payment) =>
      (await isNonceUsed(rpc, payment)) ? findTaken(parts.evidence, network, payment) : undefined,
    findUse: (payment) => findUse(parts, requireUpto(payment)),
    readFunds: async ({ payload }) => {
      const [balance, allowance] = await Promise.all([
        readBalance(rpc, network, payload.from),
        readAllowance(rpc, network, payload.from),
      ])
      return chooseSmaller(balance, allowance)
    },
    settle: (id, payment) => settle(parts, id, requireUpto(payment)),
    lookup: async (id, payment) => {
      const journaled = await sender.find(id)
      const receipt =
        journaled === undefined || isDead(journaled)
          ? undefined
          : await parts.receipts.wait(listHashes(journaled), 0)
      return conclude(parts, requireUpto(payment), { journaled, receipt })
    },
  }
}

async function findUse(parts: Parts, payment: UptoPayment): Promise<Settlement> {
  const taken = await findTaken(parts.evidence, parts.network, payment)
  if (taken === undefined) return { state: 'failed', reason: 'use_not_found', final: false }
  return readTaken(parts, payment, taken)
}

/** Reads whether the block that has a transaction of ours now says that it took the payment, as the log that led to it did. */
async function readTaken(
  { receipts, network }: Parts,
  payment: UptoPayment,
  { transaction, amount: value }: TakenUpto,
): Promise<Settlement> {
  const receipt = await receipts.wait([transaction], 0)
  const taken = { ...payment, payload: { ...payment.payload, value } }
  const isMade = receipt?.succeeded === true && hasMoved(receipt.logs, network, taken)
  // Another block than the one that had it may have it now, in which the permit was not there any more.
  if (!isMade) return { state: 'pending', transaction, reason: 'not_confirmed' }
  return { state: 'settled', transaction, blockNumber: receipt.blockNumber }
}

function requireUpto(payment: SignedPayment): UptoPayment {
  if (!isUpto(payment)) throw new Error('a payment of another scheme is settled elsewhere')
  return payment
}

/** Reads what the payer lets Permit2 move. */
function readAllowance(rpc: Rpc, network: PaymentNetwork, payer: string): Promise<bigint> {
  return readCall(rpc, { to: network.asset.address, data: encodeAllowanceCall(payer) })
}

async function verify(
  parts: Parts,
  payment: UptoPayment,
  { amount }: Requirement,
): Promise<Verification> {
  const { rpc, sender, network, underWay, failures } = parts
  const terms = checkUptoPayment(parts, payment, amount)
  if (!terms.ok) return terms
  if (!isPermitSigned(network, payment))
    return { ok: false, reason: 'invalid_signature', field: 'payload.signature' }
  if (failures.isOver(payment.payload.from)) return failedBefore
  const taken = { ...payment, payload: { ...payment.payload, value: amount } }
  underWay.look(payment.payload)
  const data = encodeUptoCall(network, taken)
  const [simulation] = await Promise.all([
    simulate(rpc, { from: sender.address, to: uptoProxyAddress, data }),
    sender.requireFunds(uptoGas),
  ])
  if (simulation.ok) return { ok: true }
  if (await isNonceUsed(rpc, payment))
    return { ok: false, reason: 'authorization_used', field: 'payload.permit2Authorization.nonce' }
  const { from } = payment.payload
  if ((await readBalance(rpc, network, from)) < amount)
    return { ok: false, reason: 'insufficient_balance', detail: simulation.reason }
  const isAllowed = (await readAllowance(rpc, network, from)) >= amount
  const detail = isAllowed
    ? simulation.reason
    : `permit2_allowance_required: the wallet must let Permit2 (${permit2Address}) move ${amount} of ${network.asset.address}`
  return { ok: false, reason: 'simulation_failed', detail }
}

async function settle(parts: Parts, id: string, payment: UptoPayment): Promise<Settlement> {
  const { rpc, sender, receipts, underWay, failures, network, world, log } = parts
  const { from } = payment.payload
  let journaled: Journaled
  try {
    // It was verified when it was claimed, which may be long ago.
    const isLate = isTooLate(payment.payload, getNowSeconds(world))
    if (isLate && (await sender.find(id)) === undefined)
      return conclude(parts, payment, { journaled: undefined, receipt: undefined })
    // Both ends bound what a payer can have under way: else the rest would revert on our gas.
    const entry = await underWay.enter(payment.payload, {
      readAllowance: (payer) => readAllowance(rpc, network, payer),
    })
    // A transaction of an earlier try needs no room: the payer's balance has it deducted already.
    if (entry !== 'entered' && (await sender.find(id)) === undefined)
      return entry === 'busy'
        ? { state: 'pending', reason: 'payer_has_others_under_way', isUnsent: true }
        : { state: 'failed', reason: 'insufficient_balance', final: false }
    const isRefused = (await failures.allow(from, id)) === 'refused'
    if (isRefused && (await sender.find(id)) === undefined) {
      underWay.leave(payment.payload, 'not made')
      return { state: 'failed', reason: 'failed_before', final: false }
    }
    const data = encodeUptoCall(network, payment)
    journaled = await sender.send({ id, to: uptoProxyAddress, data, gas: uptoGas })
  } catch (error) {
    // The transaction may be in the journal, and may go out later.
    log.warn({ id, error }, 'a settlement was not sent')
    return { state: 'pending', reason: 'not_sent' }
  }
  const receipt = isDead(journaled)
    ? undefined
    : await receipts.wait(listHashes(journaled), settleTimeoutMs)
  return conclude(parts, payment, { journaled, receipt })
}

/**
 * Decides the outcome by our one transaction: nobody else can hand the payment in. Where the journal has none that took
 * it, the journal may be a restored one, and the chain tells of a transaction that it has lost. It is over once the chain
 * itself is past its end: until then a block may still take what was sent, and after it none does, whatever the
 * transaction waits for.
 */
async function conclude(parts: Parts, payment: UptoPayment, attempt: Tried): Promise<Settlement> {
  const { rpc, evidence, network } = parts
  const judged = judgeAttempt(parts, payment, attempt)
  if (judged.state === 'settled') return judged
  const end = await findBlockPast(parts, payment.payload)
  const isOver = end !== undefined
  if (judged.state === 'pending' && !isOver) return judged
  if (!(await isNonceUsed(rpc, payment, end)))
    return judged.state === 'failed'
      ? { ...judged, final: isOver }
      : endUnmade(parts, payment, attempt)
  const taken = await findTaken(evidence, network, payment)
  if (taken?.amount === payment.payload.value) return readTaken(parts, payment, taken)
  return judged.state === 'failed' ? { ...judged, final: isOver } : judged
}

/** Gives up a payment whose transaction no block took before its end. */
function endUnmade(
  { underWay, failures }: Parts,
  { payload }: UptoPayment,
  { journaled }: Tried,
): Settlement {
  underWay.leave(payload, 'not made')
  if (journaled !== undefined) failures.noteHarmless(payload.from, journaled.id)
  return { state: 'failed', reason: 'expired', final: true }
}

function judgeAttempt(
  { network, sender, underWay, failures }: Parts,
  payment: UptoPayment,
  attempt: Tried,
): Settlement {
  const { journaled, receipt } = attempt
  const isUndecided = journaled !== undefined && !isDead(journaled) && receipt === undefined
  if (isUndecided) return { state: 'pending', transaction: journaled.hash, reason: 'not_confirmed' }
  const isMade = receipt?.succeeded === true && hasMoved(receipt.logs, network, payment)
  underWay.leave(payment.payload, isMade ? 'made' : 'not made')
  const { from } = payment.payload
  if (journaled === undefined) return { state: 'failed', reason: 'not_sent', final: false }
  if (receipt === undefined) {
    if (journaled.state === 'reverted')
      failures.noteFailed(from, journaled.id, Number(journaled.createdAtMs))
    return { state: 'failed', reason: 'transaction_reverted', final: false }
  }
  const { succeeded, blockNumber, hash } = receipt
  sender.note({ id: journaled.id, state: succeeded ? 'mined' : 'reverted', blockNumber })
  if (!succeeded) {
    failures.noteFailed(from, journaled.id)
    return { state: 'failed', reason: 'transaction_reverted', final: false }
  }
  failures.noteHarmless(from, journaled.id)
  if (!isMade) return { state: 'failed', reason: 'no_transfer', final: false }
  return { state: 'settled', transaction: hash, blockNumber }
}
