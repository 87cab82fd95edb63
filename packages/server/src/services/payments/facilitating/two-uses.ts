import { createHash } from 'node:crypto'
import type { Database } from '../../../database/database.ts'
import { listHashes, listSigned } from '../../../x402/journal.ts'
import { findClaim } from '../claims/claim-store.ts'

/**
 * An authorization that pays a seller's own wallet may be brought twice at once: for a purchase here, and by another
 * server of the same seller, which lets us settle it. Both find that it is made, and one alone may deliver for it.
 */
type Use = {
  /** Milliseconds since 1970. */
  readonly sinceMs: bigint
  /** The transactions that were signed for it. */
  readonly hashes: readonly string[]
}

/**
 * Chooses which of the two has a payment that this transaction made: whose transaction it is; where it is somebody else's,
 * who had the payment first.
 */
export async function chooseUse(
  database: Database,
  identity: string,
  transaction: string,
): Promise<'purchase' | 'settlement'> {
  const settlement = await findSettlement(database, identity)
  const purchase = await findPurchase(database, identity)
  if (purchase === undefined) return 'settlement'
  if (settlement === undefined || purchase.hashes.includes(transaction)) return 'purchase'
  const isSettled = settlement.hashes.includes(transaction)
  return isSettled || settlement.sinceMs < purchase.sinceMs ? 'settlement' : 'purchase'
}

/** Derives the id of the transaction of a payment for another server, from the identity of the payment. */
export function deriveSettlementId(identity: string): string {
  return `facilitated_${createHash('sha256').update(identity).digest('hex').slice(0, 32)}`
}

async function findSettlement(database: Database, identity: string): Promise<Use | undefined> {
  const signed = await listSigned(database, [deriveSettlementId(identity)])
  const [first] = signed
  return first && { sinceMs: first.createdAtMs, hashes: signed.flatMap(listHashes) }
}

/** Finds the purchase that asks, or has asked, for the payment's own money. */
async function findPurchase(database: Database, identity: string): Promise<Use | undefined> {
  const claim = await findClaim(database, { identity })
  if (claim === undefined) return undefined
  const { id, state, settled_by: settledBy, created_at_ms: sinceMs } = claim
  if (settledBy === null && state !== 'ready' && state !== 'claimed') return undefined
  const signed = await listSigned(database, [id, `again:${id}`])
  return { sinceMs, hashes: signed.flatMap(listHashes) }
}
