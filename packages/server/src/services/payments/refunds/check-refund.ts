import { Fault, makeInvalidFault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { findReversal } from '../../../projections/reversals.ts'
import { readTakenBack } from '../reversals/taken-back.ts'

export type RefundOrder = {
  readonly app: string
  /** The payment of the sale. */
  readonly paymentId: string
  /** All that the application's parts of the sale cost where it is not given. */
  readonly amount: bigint | undefined
}

/** Checks that an application sold what is to be refunded; gives the amount, all that it sold where none is named. */
export async function checkRefund(
  database: Queryable,
  { app, paymentId, amount }: RefundOrder,
): Promise<bigint> {
  const sold = await requireSoldAmount(database, { app, paymentId })
  const refunded = amount ?? sold
  if (refunded < 1n || refunded > sold)
    throw makeInvalidFault('/amount', `must be from 1 to ${sold}, which ${app} sold for it`)
  return refunded
}

/**
 * Refuses a refund of a sale whose own payment its network does not have, for now or for good: nobody has paid for it, so
 * it would be the seller's own money.
 */
export async function refuseUnpaid(
  database: Queryable,
  schema: string,
  paymentId: string,
): Promise<void> {
  if ((await findReversal(database, schema, paymentId)) !== undefined)
    throw new Fault('CONFLICT', {
      message: `The payment of the sale ${paymentId} was reversed: its network does not have it any more, so there is nothing to give back`,
    })
  const note = (await readTakenBack(database, [paymentId])).get(paymentId)
  if (note?.transaction === null)
    throw new Fault('CONFLICT', {
      message: `The network does not have the payment ${paymentId} at this moment, because a reorganisation took it back: the sale can be refunded once it is there again`,
    })
}

/** Sums the gross of an application's parts of a sale; 404 where it sold nothing for this payment. */
async function requireSoldAmount(
  database: Queryable,
  { app, paymentId }: Pick<RefundOrder, 'app' | 'paymentId'>,
): Promise<bigint> {
  const [row] = await database.query<{ gross: string | null }>(sql`
    SELECT sum(sold.gross)::text AS gross FROM system.sale AS sale JOIN system.sold AS sold ON sold.leaf = sale.leaf
    WHERE sale.payment_id = ${paymentId} AND sold.app = ${app}`)
  const gross = row?.gross ?? null
  if (gross === null)
    throw new Fault('PAYMENT_NOT_FOUND', { message: `${app} sold nothing for ${paymentId}` })
  return BigInt(gross)
}
