import { requirePresent } from '../../../base/assert.ts'
import type { Database } from '../../../database/database.ts'
import type { SystemChain } from '../../applications/tenants.ts'
import type { Claim } from '../claims/claim-store.ts'
import { toUsd } from '../currency.ts'
import { describeMovement } from '../describe-movement.ts'
import { makeReleasedFault } from '../payment-faults.ts'
import { depositOperation } from '../purchase.ts'
import { decodeClaimTerms } from '../quotes/terms.ts'
import { refuseHeld } from './held-money.ts'

/** Returns whether the payment was claimed to be a balance of an account that its payer named. */
export function isNamedDeposit({ operation, terms }: Pick<Claim, 'operation' | 'terms'>): boolean {
  return operation === depositOperation && terms !== null
}

/** Finds the account that a named deposit is for. */
export function getDepositAccount(claim: Claim): string {
  const [payee] = decodeClaimTerms(claim).payees
  return requirePresent(payee, 'the account of a deposit').account
}

/**
 * Describes a booked deposit, in the same bytes each time; 409 where its money is held, or was until the operator
 * released it.
 */
export async function describeDeposit(
  database: Database,
  system: SystemChain,
  claim: Claim,
): Promise<Buffer> {
  const { ledger, schema } = system
  const found = await ledger.findDeposit(database, schema, claim.identity)
  const { leaf, transaction } = requirePresent(found, 'the entry of a booked deposit')
  const place = { leaf, account: getDepositAccount(claim) }
  const entry = await ledger.findMovement(database, schema, place)
  if (entry === undefined) {
    await refuseHeld({ database, tenants: { system } }, claim)
    throw makeReleasedFault(place.account)
  }
  const [network, , payer] = claim.identity.split('/')
  const said = {
    payment_id: claim.id,
    payer,
    network,
    transaction,
    amount: String(claim.amount),
    usd: toUsd({ amount: String(claim.amount) }),
    entry: describeMovement(entry),
  }
  return Buffer.from(JSON.stringify(said))
}
