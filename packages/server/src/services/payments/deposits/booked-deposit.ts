import { requirePresent } from '../../../base/assert.ts'
import type { Queryable } from '../../../database/database.ts'
import type { SystemChain } from '../../applications/tenants.ts'
import type { Claim } from '../claims/claim-store.ts'
import { describeMovement } from '../describe-movement.ts'
import { depositOperation } from '../purchase.ts'
import { decodeClaimTerms } from '../quotes/terms.ts'

/** Returns whether the payment was claimed to be a balance of an account that its payer named. */
export function isNamedDeposit({ operation, terms }: Pick<Claim, 'operation' | 'terms'>): boolean {
  return operation === depositOperation && terms !== null
}

/** Finds the account that a named deposit is for. */
export function getDepositAccount(claim: Claim): string {
  const [payee] = decodeClaimTerms(claim).payees
  return requirePresent(payee, 'the account of a deposit').account
}

/** Describes a booked deposit, in the same bytes each time. */
export async function describeDeposit(
  database: Queryable,
  { ledger, schema }: Pick<SystemChain, 'ledger' | 'schema'>,
  claim: Claim,
): Promise<Buffer> {
  const found = await ledger.findDeposit(database, schema, claim.identity)
  const { leaf, transaction } = requirePresent(found, 'the entry of a booked deposit')
  const place = { leaf, account: getDepositAccount(claim) }
  const entry = requirePresent(
    await ledger.findMovement(database, schema, place),
    'the posting of a deposit',
  )
  const [network, , payer] = claim.identity.split('/')
  const said = {
    payment_id: claim.id,
    payer,
    network,
    transaction,
    amount: String(claim.amount),
    entry: describeMovement(entry),
  }
  return Buffer.from(JSON.stringify(said))
}
