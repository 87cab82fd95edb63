import type { BookedMove } from '../../../projections/reversals.ts'
import type { TransactionReceipt } from '../../../x402/evm-chain.ts'
import { isTransferMade } from '../../../x402/native-transfer.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { isNative } from '../../../x402/protocol.ts'
import { hasPayment } from '../../../x402/token.ts'
import { deriveTransferNonce } from '../../../x402/treasury.ts'
import { hasMoved, isUpto } from '../../../x402/upto/upto.ts'
import type { SaidUse } from '../../../x402/use-reader.ts'
import { type Claim, findClaim } from '../claims/claim-store.ts'
import { decodeStoredPayment } from '../claims/stored-payment.ts'
import type { PaymentPorts } from '../payment-ports.ts'
import { findTransfer, type OutgoingTransfer } from '../transfers/transfer-store.ts'

/** A move with the row that it is of, where there is one. */
export type KnownMove = {
  readonly move: BookedMove
  readonly claim: Claim | undefined
  readonly transfer: OutgoingTransfer | undefined
  /** The transaction that is booked; a transfer that is reversed has none any more. */
  readonly transaction: string | null
}

/**
 * Reads the row that a move is of. The transaction is the ledger's: the process that booked it may have died before the
 * row had it.
 */
export async function readKnownMove(
  { database, tenants }: Pick<PaymentPorts, 'database' | 'tenants'>,
  move: BookedMove,
): Promise<KnownMove> {
  const { ledger, schema } = tenants.system
  if (move.kind === 'deposit') {
    const claim = await findClaim(database, { id: move.id })
    const deposit = claim && (await ledger.findDeposit(database, schema, claim.identity))
    return { move, claim, transfer: undefined, transaction: deposit?.transaction ?? null }
  }
  const transfer = await findTransfer(database, move.id)
  const booked = await ledger.findTransfer(database, schema, move.id)
  const transaction = booked?.outcome === 'transfer_paid' ? booked.transaction : null
  return { move, claim: undefined, transfer, transaction }
}

type PaidUse = SaidUse & { readonly value: bigint }

/** Finds the authorization that a move is made by; undefined where its holder, or a permit, moves it. */
export function findUseOf(
  { claim, transfer }: KnownMove,
  network: PaymentNetwork,
): PaidUse | undefined {
  if (claim !== undefined) {
    const payment = decodeStoredPayment(claim.payment)
    return isNative(payment) || isUpto(payment) ? undefined : payment.payload
  }
  if (transfer === undefined) return undefined
  const { id, recipient: to, amount: value } = transfer
  return { from: network.payTo, to, value, nonce: deriveTransferNonce(id) }
}

/**
 * Returns true where a transaction made exactly this move. That it succeeded says nothing: a joint one does so whatever
 * becomes of its parts, and other code than ours may do something else in another block. Nor does a nonce alone, which two
 * payers may share.
 */
export function isMadeBy(
  known: KnownMove,
  network: PaymentNetwork,
  receipt: TransactionReceipt,
): boolean {
  if (!receipt.succeeded) return false
  const use = findUseOf(known, network)
  if (use !== undefined) return hasPayment(receipt.logs, network, use)
  if (known.claim === undefined) return false
  const payment = decodeStoredPayment(known.claim.payment)
  if (isNative(payment)) return isTransferMade(receipt, network, payment)
  return isUpto(payment) && hasMoved(receipt.logs, network, payment)
}
