import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { toHeldAccount } from '../../../projections/held-payments.ts'
import { findReversal } from '../../../projections/reversals.ts'
import { readUntaken, takeFromAccount } from '../accounts/account-lock.ts'
import { deleteHold, insertHold } from '../accounts/holds.ts'
import type { Claim } from '../claims/claim-store.ts'
import { getOwnAccount } from '../deposits/claim-deposit.ts'
import { makeReversalEntry, platformAccount, toApplicationAccount } from '../ledger-entries.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { type OutgoingTransfer, updateTransfer } from '../transfers/transfer-store.ts'

export type ReversalPorts = Pick<PaymentPorts, 'database' | 'tenants'>

const holds = sql.id('operations', 'account_hold')
const formatHoldId = (paymentId: string) => `reversal_${paymentId}`

/**
 * Holds of a payment's money what is still on its account, as its chain does not have it: it buys nothing, and does not
 * go out, until it is back or is taken back. Returns the sum, in atomic units.
 */
export function keepGone({ database }: ReversalPorts, claim: Claim): Promise<bigint> {
  const account = getOwnAccount(claim)
  const id = formatHoldId(claim.id)
  return takeFromAccount(database, account, async (tx) => {
    const held = await readHeld(tx, id)
    const untaken = await readUntaken(tx, account)
    const amount = held + clamp(untaken, claim.amount - held)
    if (amount > held) {
      await deleteHold(tx, id)
      await insertHold(tx, { id, account, amount })
    }
    return amount
  })
}

/** Lists those of these payments of whose money something is held so. */
export async function listGone(
  { database }: ReversalPorts,
  paymentIds: readonly string[],
): Promise<ReadonlySet<string>> {
  const rows = await database.query<{ id: string }>(
    sql`SELECT id FROM ${holds} WHERE id = ANY(${paymentIds.map(formatHoldId)}::text[])`,
  )
  return new Set(rows.map(({ id }) => id.slice(formatHoldId('').length)))
}

/** Ends that hold: the money is on the chain again. */
export function endGone({ database }: ReversalPorts, paymentId: string): Promise<void> {
  return deleteHold(database, formatHoldId(paymentId))
}

/**
 * Takes back what was booked of a payment whose money never came for good: from the account that got it, as far as that
 * has it; the rest is the operator's loss. Returns that loss, in atomic units. The ledger counts it once.
 */
export async function writeReversal(
  ports: ReversalPorts,
  claim: Claim,
  reason: string,
): Promise<bigint> {
  const { database, tenants } = ports
  const { chain, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  if ((await findReversal(database, schema, claim.id)) === undefined) {
    const taken = await findTaken(ports, claim)
    await chain.append([makeEntry(claim, taken, reason)], { isOwed: true })
    await chain.whenApplied(chain.head().height)
  }
  // It counts twice for a moment, and never not at all.
  await endGone(ports, claim.id)
  return BigInt((await findReversal(database, schema, claim.id))?.lost ?? 0)
}

/** Gives the amount of a transfer back to its account: its chain will never have it. */
export async function writeTransferReversal(
  { database, tenants }: ReversalPorts,
  one: OutgoingTransfer,
  reason: string,
): Promise<void> {
  const { chain, schema } = tenants.system
  const { id, network, account, amount } = one
  await chain.whenApplied(chain.head().height)
  if ((await findReversal(database, schema, id)) === undefined) {
    const facts = { paymentId: id, identity: id, network, amount, moved: amount, lost: 0n, reason }
    const amounts = [
      [`outside:${network}`, -amount],
      [account, amount],
    ] as const
    await chain.append([makeReversalEntry({ ...facts, amounts })], { isOwed: true })
    await chain.whenApplied(chain.head().height)
  }
  await updateTransfer(database, one, { state: 'returned', reason })
}

/** The sums that a reversal takes, and from where. */
type Taken = {
  readonly account: string
  readonly moved: bigint
  /** The share of the platform in a sale whose money was the seller's own to lose. */
  readonly fee?: bigint
}

async function findTaken(ports: ReversalPorts, claim: Claim): Promise<Taken> {
  const { database, tenants } = ports
  const { ledger, schema } = tenants.system
  const sale = await ledger.findSale(database, schema, claim.id)
  const sold: Sold | undefined = sale && JSON.parse(sale.body)
  if (sold?.paid_to !== undefined) {
    const fees = sold.postings.filter(({ account }) => account === platformAccount)
    const fee = fees.reduce((sum, { amount }) => sum + BigInt(amount), 0n)
    return { account: toApplicationAccount(claim.app), moved: 0n, fee }
  }
  const heldOn = toHeldAccount(getOwnAccount(claim), claim.id)
  const { balance } = await ledger.readBalance(database, schema, heldOn)
  if (balance >= claim.amount) return { account: heldOn, moved: claim.amount }
  return { account: getOwnAccount(claim), moved: await keepGone(ports, claim) }
}

type Sold = {
  readonly paid_to?: string
  readonly postings: readonly { readonly account: string; readonly amount: string }[]
}

/** A payment that went straight to its seller's wallet is the seller's loss, who gets the platform's share of it back. */
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

async function readHeld(tx: Queryable, id: string): Promise<bigint> {
  const [row] = await tx.query<{ amount: string }>(
    sql`SELECT amount::text AS amount FROM ${holds} WHERE id = ${id}`,
  )
  return BigInt(row?.amount ?? 0)
}

/** Keeps an amount from 0 to a bound. */
function clamp(amount: bigint, most: bigint): bigint {
  if (amount < 0n) return 0n
  return amount < most ? amount : most
}
