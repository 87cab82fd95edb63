import { HttpReply } from '../../http/reply.ts'
import { encodeSettlement } from '../../x402/protocol.ts'
import { uncacheable } from './payment-required.ts'
import type { Purchase } from './purchase.ts'
import { receiptIdOf } from './receipt-id.ts'

/** What was bought, with the settlement in the form that the client's version of x402 reads. */
export function paidReply(
  purchase: Purchase,
  sold: { paymentId: string; status: number; body: Buffer; transaction: string },
): HttpReply {
  const notice = encodeSettlement(purchase.payment, {
    success: true,
    transaction: sold.transaction,
    network: purchase.requirement.network,
    payer: purchase.payment.payload.from,
    amount: purchase.requirement.amount,
  })
  return new HttpReply(sold.body, {
    status: sold.status,
    headers: {
      ...uncacheable,
      [notice.name.toLowerCase()]: notice.value,
      'x-receipt-id': receiptIdOf(sold.paymentId),
      'x-payment-id': sold.paymentId,
    },
  })
}
