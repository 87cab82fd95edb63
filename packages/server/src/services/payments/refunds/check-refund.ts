import { Fault, makeInvalidFault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'

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
