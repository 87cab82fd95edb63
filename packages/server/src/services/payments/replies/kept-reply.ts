import { Fault } from '../../../base/fault.ts'
import type { Uses } from '../../call.ts'
import { findReply } from '../claims/reply-store.ts'
import { findPaymentId } from './receipt-id.ts'

/** Returns the bytes that a receipt's payment bought of an application; 404 where they are not kept (any more). */
export async function requireKeptReply(
  { database, tenants }: Uses<'database' | 'tenants'>,
  receiptId: string,
  app: string,
): Promise<Buffer> {
  const { chain, ledger, schema } = tenants.system
  const paymentId = findPaymentId(receiptId)
  await chain.whenApplied(chain.head().height)
  const sale = paymentId && (await ledger.findSale(database, schema, paymentId))
  const facts: { readonly app?: unknown } = sale ? JSON.parse(sale.body) : {}
  const kept = paymentId && facts.app === app ? await findReply(database, paymentId) : undefined
  if (!kept)
    throw new Fault('RECEIPT_NOT_FOUND', {
      message: `There is no receipt ${receiptId} of ${app} whose reply is still kept`,
    })
  return kept.body
}
