import { Fault } from '../../../base/fault.ts'
import type { Database } from '../../../database/database.ts'
import { listHeldPayments } from '../../../projections/held-payments.ts'
import type { SystemChain } from '../../applications/tenants.ts'
import type { Claim } from '../claims/claim-store.ts'
import type { PaymentMethod } from '../payment-ports.ts'
import { depositOperation } from '../purchase.ts'

type RestoredMethod = Pick<PaymentMethod, 'network' | 'restoredAt' | 'readTime'>
type DatedClaim = Pick<Claim, 'identity' | 'operation' | 'created_at_ms'>

/**
 * Returns true where the money of a claim came before the database was last restored, and the restored state does not
 * know of it: it may have bought something in the life that is lost. Every way in which money gets to a balance without
 * buying something asks this. The block of the transfer decides; without a node, the time of the claim does. A purchase
 * that was claimed since then was not paid before, so it is not asked for.
 */
export async function isOfLostLife(
  { methods }: { readonly methods: readonly RestoredMethod[] },
  { identity, operation, created_at_ms: createdAtMs }: DatedClaim,
  transaction: string,
): Promise<boolean> {
  const [network] = identity.split('/')
  const method = methods.find((one) => one.network.id === network)
  if (method?.restoredAt === undefined) return false
  const isClaimedBefore = createdAtMs / 1000n <= method.restoredAt
  if (!isClaimedBefore && operation !== depositOperation) return false
  const movedAt = await method.readTime?.(transaction)
  return movedAt === undefined ? isClaimedBefore : movedAt <= method.restoredAt
}

/** Throws PAYMENT_HELD where the money of this payment is held. */
export async function refuseHeld(
  { database, tenants }: { readonly database: Database; readonly tenants: { system: SystemChain } },
  { id: paymentId, identity }: Pick<Claim, 'id' | 'identity'>,
): Promise<void> {
  const { chain, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  const [held] = await listHeldPayments(database, schema, { paymentId, identity, limit: 1 })
  if (held === undefined) return
  const [network, , payer] = held.identity.split('/')
  const { amount, transaction } = held
  throw new Fault('PAYMENT_HELD', {
    details: { payment_id: paymentId, payer, amount, network, transaction },
  })
}
