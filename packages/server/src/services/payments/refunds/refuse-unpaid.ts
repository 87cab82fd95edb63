import { Fault } from '../../../base/fault.ts'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import type { ChannelRow } from '../../../projections/channel-tables.ts'
import { toHeldAccount } from '../../../projections/held-payments.ts'
import { toPayerAccount } from '../../../projections/ledger-entry.ts'
import { findChannel } from '../../../projections/read-channels.ts'
import type { SystemChain } from '../../applications/tenants.ts'
import { getUsable } from '../channels/channel-register.ts'
import { claims } from '../claims/claim-store.ts'
import type { SaleBody } from '../make-sale.ts'
import { takenBack } from '../reversals/taken-back.ts'

/**
 * Refuses a refund of a sale that nobody has paid for, for now or for good, because a network does not have the money: it
 * would be the seller's own. That is the sale's own payment or, where a balance was charged, any deposit to it from before
 * the sale. A deposit that was reversed without a loss was all left, and one that was lost before the sale was asked for
 * paid for nothing of it.
 */
export async function refuseUnpaid(
  database: Queryable,
  { ledger, schema }: Pick<SystemChain, 'ledger' | 'schema'>,
  paymentId: string,
): Promise<void> {
  const sale = await ledger.findSale(database, schema, paymentId)
  if (sale === undefined) return
  const body: SaleBody = JSON.parse(sale.body)
  const deposit = await ledger.findDeposit(database, schema, body.identity)
  // Money that was on the balance before its sale may have been spent, and the sale paid by what came after it.
  const isOwn = body.paid_from === undefined && deposit?.leaf === sale.leaf - 1n
  const isCharged = body.paid_from !== 'channel' && body.paid_to === undefined && !isOwn
  const account = isCharged ? toPayerAccount(body.payer) : undefined
  const gone = await findGone(database, { paymentId, account, leaf: sale.leaf })
  if (gone !== undefined) throw makeGoneFault(paymentId, gone)
  const channel = body.channel && (await findChannel(database, schema, body.channel.id))
  if (channel !== undefined) refuseUnclaimed(paymentId, channel)
}

/** Nobody can say which of its charges a channel pays for that has less than these, or of which its payer leaves less. */
function refuseUnclaimed(paymentId: string, channel: ChannelRow): void {
  const { id, balance, charged, claimed } = channel
  if (claimed >= charged || getUsable(channel) >= charged) return
  throw new Fault('CONFLICT', {
    message:
      balance < charged
        ? `The channel ${id}, which paid for the sale ${paymentId}, has less on its network at this moment than it was charged: the sale can be refunded once it has that`
        : `The payer of the channel ${id}, which paid for the sale ${paymentId}, is taking back what it was charged: the sale can be refunded once that is claimed`,
  })
}

/** A payment that its network does not have; `isOver` where that is for good. */
type Gone = { readonly id: string; readonly isOver: boolean }

/**
 * Finds it in one statement: a note of what is gone ends once its reversal is in the tables, so neither is missed. Money
 * that a purchase held when it was lost is charged after that.
 */
async function findGone(
  database: Queryable,
  sale: { readonly paymentId: string; readonly account: string | undefined; readonly leaf: bigint },
): Promise<Gone | undefined> {
  const { paymentId, account, leaf } = sale
  const [row] = await database.query<{ id: string; is_over: boolean }>(sql`
    WITH gone AS (
      SELECT payment_id AS id, true AS is_over, lost > 0 AND (leaf > ${leaf}::int8
        OR time_ms >= (SELECT created_at_ms FROM ${claims} WHERE id = ${paymentId})) AS matters FROM system.reversal
      UNION ALL SELECT id, false, true FROM ${takenBack} WHERE transaction IS NULL)
    SELECT gone.id, gone.is_over FROM gone WHERE gone.id = ${paymentId}
      OR gone.matters AND EXISTS (
        SELECT 1 FROM ${claims} AS claim
        JOIN system.settled_payment AS paid ON paid.identity = claim.identity AND paid.leaf < ${leaf}::int8
        JOIN system.posting AS booked ON booked.leaf = paid.leaf
          AND booked.account IN (${account ?? null}::text, ${account === undefined ? null : toHeldAccount(account, '')}::text || gone.id)
        WHERE claim.id = gone.id)
    ORDER BY gone.is_over DESC, gone.id LIMIT 1`)
  return row && { id: row.id, isOver: row.is_over }
}

function makeGoneFault(paymentId: string, { id, isOver }: Gone): Fault {
  const isOwn = id === paymentId
  if (isOver)
    return new Fault('CONFLICT', {
      message: isOwn
        ? `The payment of the sale ${paymentId} was reversed: its network does not have it any more, so there is nothing to give back`
        : `The sale ${paymentId} was paid out of a balance that had the payment ${id}, which was lost: its network does not have it any more, so there is nothing to give back`,
    })
  return new Fault('CONFLICT', {
    message: `The network does not have the payment ${id} at this moment, because a reorganisation took it back: the sale${isOwn ? '' : `, which a balance with its money paid for,`} can be refunded once it is there again`,
  })
}
