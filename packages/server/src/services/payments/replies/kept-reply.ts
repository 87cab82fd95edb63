import type { SaleDetails } from '@tollbase/verify/sale-details'
import { Fault } from '../../../base/fault.ts'
import type { Uses } from '../../call.ts'
import { findReply, type KeptReply } from '../claims/reply-store.ts'
import { findPaymentId } from './receipt-id.ts'

/** An answer that was bought, what its records come from, and what the ledger has of its sale. */
export type BoughtReply = Pick<KeptReply, 'body' | 'sources'> &
  Pick<SaleDetails, 'measured'> & { readonly operation: string }

/** Returns what a receipt's payment bought of an application; 404 where its bytes are not kept (any more). */
export async function requireKeptReply(
  { database, tenants }: Uses<'database' | 'tenants'>,
  receiptId: string,
  app: string,
): Promise<BoughtReply> {
  const { chain, ledger, schema } = tenants.system
  const paymentId = findPaymentId(receiptId)
  await chain.whenApplied(chain.head().height)
  const sale = paymentId && (await ledger.findSale(database, schema, paymentId))
  const facts: SaleFacts | undefined = sale && JSON.parse(sale.body)
  const kept = paymentId && facts?.app === app ? await findReply(database, paymentId) : undefined
  if (!kept || facts === undefined)
    throw new Fault('RECEIPT_NOT_FOUND', {
      message: `There is no receipt ${receiptId} of ${app} whose reply is still kept`,
    })
  const { operation, measured } = facts
  return { body: kept.body, sources: kept.sources, operation, ...(measured && { measured }) }
}

type SaleFacts = Pick<SaleDetails, 'measured'> & {
  readonly app: string
  readonly operation: string
}
