import { chooseLarger, limitAmount } from '../../../base/bigint.ts'
import type { Queryable } from '../../../database/database.ts'
import { toHeldAccount } from '../../../projections/held-payments.ts'
import {
  type LedgerBody,
  listPostings,
  lossesAccount,
  toApplicationAccount,
} from '../../../projections/ledger-entry.ts'
import { findReversal } from '../../../projections/reversals.ts'
import { readUntaken, takeFromAccount } from '../accounts/account-lock.ts'
import {
  deleteHold,
  findHold,
  formatReversalHold,
  insertHold,
  readOwnHold,
} from '../accounts/holds.ts'
import type { Claim } from '../claims/claim-store.ts'
import { getOwnAccount } from '../deposits/claim-deposit.ts'
import { sumShare } from '../make-sale.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { type OutgoingTransfer, updateTransfer } from '../transfers/transfer-store.ts'
import { deleteTakenBack, lockTakenBack, setTakenBack, type TakenBack } from './taken-back.ts'

export type ReversalPorts = Pick<PaymentPorts, 'database' | 'tenants' | 'world'>

/**
 * Notes that the chain does not have a payment, and holds of its money what is still on its account: it buys nothing, and
 * does not go out, until it is back or is taken back. Returns the sum, in atomic units, with the note. Money that waits
 * for the operator's decision is held for the moment of its release: the hold counts from that entry on, so neither needs
 * to see the other. So is money that is held for its purchase, for the moment in which that ends; it is not in the sum.
 * Nothing is held of what went to its seller's own wallet.
 */
export async function keepGone(
  ports: ReversalPorts,
  claim: Claim,
): Promise<{ readonly held: bigint; readonly note: TakenBack }> {
  const account = getOwnAccount(claim)
  const id = formatReversalHold(claim.id)
  const kept = await takeFromAccount(ports.database, account, async (tx) => {
    const note = await setTakenBack(tx, claim.id, null)
    const before = (await findHold(tx, id)) ?? 0n
    const own = await readOwnHold(tx, { id: claim.id, account })
    const held = await computeHold(tx, ports, { claim, own, held: chooseLarger(before - own, 0n) })
    const amount = own + held
    if (amount !== before) {
      await deleteHold(tx, id)
      await insertHold(tx, { id, account, amount })
    }
    return { held, note }
  })
  ports.world.failpoint?.('move.gone')
  return kept
}

/**
 * Computes what is to be held where this much is, beside what is held for the purchase (`own`); the place of the money is
 * read while nobody can take it. Money that a purchase has taken meanwhile is not held any more.
 */
async function computeHold(
  tx: Queryable,
  { tenants }: ReversalPorts,
  { claim, own, held }: { readonly claim: Claim; readonly own: bigint; readonly held: bigint },
): Promise<bigint> {
  const account = getOwnAccount(claim)
  const { account: place } = await findPlace(tx, tenants, claim)
  if (place === toHeldAccount(account, claim.id)) return claim.amount - own
  if (place !== account) return held
  return limitAmount(held + (await readUntaken(tx, account)), claim.amount - own)
}

/**
 * Ends that: the chain has the move again, by the transaction that is booked, or by another one, which is noted. Returns
 * false, and ends nothing, where the note is another one than that which was there when the chain was asked: the move may
 * have been taken back once more since, by a process that asked later.
 */
export async function endGone(
  { database, world }: ReversalPorts,
  id: string,
  by: { readonly other: string | null; readonly note?: TakenBack },
): Promise<boolean> {
  const { other, note } = by
  return database.transaction(async (tx) => {
    if (note !== undefined && !(await lockTakenBack(tx, id, note))) return false
    // The note first, as all do: who has waited for it sees the hold that was made beside it.
    if (other === null) await deleteTakenBack(tx, id)
    else await setTakenBack(tx, id, other)
    world.failpoint?.('move.freed')
    await deleteHold(tx, formatReversalHold(id))
    return true
  })
}

/** Returns true where a move is reversed in the ledger. */
export async function hasReversal(
  { database, tenants }: Pick<ReversalPorts, 'database' | 'tenants'>,
  id: string,
): Promise<boolean> {
  return (await findReversal(database, tenants.system.schema, id)) !== undefined
}

/** Returns true where a move is reversed in the ledger, and does what a process that died after that entry has left. */
export async function endReversal(
  ports: ReversalPorts,
  { id, transfer }: { readonly id: string; readonly transfer: OutgoingTransfer | undefined },
): Promise<boolean> {
  const { database, tenants } = ports
  const reversal = await findReversal(database, tenants.system.schema, id)
  if (reversal === undefined) return false
  if (transfer?.state === 'paid')
    await updateTransfer(database, transfer, { state: 'returned', reason: reversal.reason })
  ports.world.failpoint?.('move.returned')
  await endGone(ports, id, { other: null })
  return true
}

/**
 * Takes back what was booked of a payment whose money never came for good: from the account that got it, as far as that
 * has it; the rest is the operator's loss. Returns that loss, in atomic units; undefined where the ledger did not count
 * it, as when the operator releases the payment's money meanwhile.
 */
export async function writeReversal(
  ports: ReversalPorts,
  claim: Claim,
  reason: string,
): Promise<bigint | undefined> {
  const { id } = claim
  const entry = makeEntry(claim, await findTaken(ports, claim), reason)
  await append(ports, entry)
  if (!(await endReversal(ports, { id, transfer: undefined }))) return undefined
  const { database, tenants } = ports
  return BigInt((await findReversal(database, tenants.system.schema, id))?.lost ?? 0)
}

/** Gives the amount of a transfer back to its account: its chain will never have it. */
export async function writeTransferReversal(
  ports: ReversalPorts,
  transfer: OutgoingTransfer,
  reason: string,
): Promise<void> {
  const { id, network, account, amount } = transfer
  const facts = { paymentId: id, identity: id, network, amount, moved: amount, lost: 0n, reason }
  const amounts = [
    [`outside:${network}`, -amount],
    [account, amount],
  ] as const
  await append(ports, makeReversalEntry({ ...facts, amounts }))
  await endReversal(ports, { id, transfer })
}

async function append(
  { tenants, world }: ReversalPorts,
  entry: ReturnType<typeof makeReversalEntry>,
): Promise<void> {
  const { chain } = tenants.system
  await chain.append([entry], { isOwed: true })
  world.failpoint?.('move.reversed')
  await chain.whenApplied(chain.head().height)
}

/** The account that has the money of a payment. */
type MoneyPlace = {
  readonly account: string
  /** The share of the platform in a sale whose money was the seller's own to lose. */
  readonly fee?: bigint
}

async function findPlace(
  database: Queryable,
  { system: { ledger, schema } }: ReversalPorts['tenants'],
  claim: Claim,
): Promise<MoneyPlace> {
  const sale = await ledger.findSale(database, schema, claim.id)
  const sold: Sold | undefined = sale && JSON.parse(sale.body)
  if (sold?.paid_to !== undefined) {
    return { account: toApplicationAccount(claim.app), fee: sumShare(sold.postings) }
  }
  const own = getOwnAccount(claim)
  const heldOn = toHeldAccount(own, claim.id)
  const { balance } = await ledger.readBalance(database, schema, heldOn)
  return { account: balance >= claim.amount ? heldOn : own }
}

/** The sum that a reversal takes from there. */
type Taken = MoneyPlace & { readonly moved: bigint }

async function findTaken(ports: ReversalPorts, claim: Claim): Promise<Taken> {
  const { chain } = ports.tenants.system
  // A purchase that has just ended holds nothing any more beside what it cost.
  await chain.whenApplied(chain.head().height)
  const place = await findPlace(ports.database, ports.tenants, claim)
  if (place.fee !== undefined) return { ...place, moved: 0n }
  if (place.account !== getOwnAccount(claim)) return { ...place, moved: claim.amount }
  return { ...place, moved: (await keepGone(ports, claim)).held }
}

type Sold = {
  readonly paid_to?: string
  readonly postings: readonly { readonly account: string; readonly amount: string }[]
}

/** A direct payment is the seller's loss, who gets the platform's share of it back. */
function makeEntry(
  { id, identity, amount }: Claim,
  { account, moved, fee }: Taken,
  reason: string,
): ReturnType<typeof makeReversalEntry> {
  const [network = ''] = identity.split('/')
  const facts = { paymentId: id, identity, network, amount, moved, reason }
  if (fee !== undefined)
    return makeReversalEntry({ ...facts, lost: fee, amounts: [[account, fee]] })
  const lost = amount - moved
  const amounts = [
    [`outside:${network}`, amount],
    [account, -moved],
  ] as const
  return makeReversalEntry({ ...facts, lost, amounts })
}

/** Makes the entry that takes back what a chain does not have any more; what no account gives is lost. */
function makeReversalEntry(reversal: {
  paymentId: string
  identity: string
  network: string
  /** Atomic units. */
  amount: bigint
  moved: bigint
  lost: bigint
  reason: string
  amounts: readonly (readonly [string, bigint])[]
}) {
  const { paymentId, identity, network, amount, moved, lost, reason, amounts } = reversal
  const body: LedgerBody = {
    kind: 'reversal',
    payment_id: paymentId,
    identity,
    network,
    amount: String(amount),
    moved: String(moved),
    lost: String(lost),
    reason,
    postings: listPostings([...amounts, [lossesAccount, -lost]]),
  }
  return { header: { type: 'ledger' }, body: JSON.stringify(body) }
}
