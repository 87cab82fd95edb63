import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { makePendingFault } from '../payment-faults.ts'
import type { Paid } from '../purchase.ts'
import { type Claim, type ClaimRow, claimColumns, claims, toClaim } from './claim-store.ts'
import { findPaymentName, type PaymentName } from './stored-payment.ts'

/** Finds the claim of a payer's that has this name, unless it is the one of this payment. */
export async function findNamedClaim(
  database: Queryable,
  {
    name: [payer, identifier],
    besides,
  }: {
    readonly name: PaymentName
    readonly besides: string
  },
): Promise<Claim | undefined> {
  const [row] = await database.query<ClaimRow>(sql`
    SELECT ${claimColumns} FROM ${claims}
    WHERE payment_identifier = ${identifier} AND split_part(identity, '/', 3) = ${payer}
      AND identity <> ${besides}`)
  return row && toClaim(row)
}

/** Refuses a payment that was not claimed because another one has its name: who asks again gets what that one buys. */
export async function refuseNamesake(
  database: Queryable,
  { identity: besides, payment }: Pick<Paid, 'identity' | 'payment'>,
): Promise<void> {
  const name = findPaymentName(payment)
  const claim = name && (await findNamedClaim(database, { name, besides }))
  if (claim !== undefined) throw makePendingFault(claim.id, 'another process took its name')
}
