import { HttpReply } from '../../../http/reply.ts'
import type { PaymentNetwork } from '../../../x402/networks.ts'
import { encodeSettlement, isNative, type Payment } from '../../../x402/protocol.ts'
import type { Delivery } from '../quotes/offer.ts'
import { toReceiptId } from './receipt-id.ts'

/** The reply that a payment bought, exactly as it was first delivered. */
export type Sold = {
  readonly paymentId: string
  readonly status: number
  readonly body: Buffer
  /** JSON where there is none. */
  readonly contentType: string | undefined
  readonly transaction: string
}

/** Makes the bought reply, with the settlement in the form of the client's version of x402. */
export function makePaidReply(payment: Payment, network: PaymentNetwork, sold: Sold): HttpReply {
  const notice = encodeSettlement(payment, {
    success: true,
    transaction: sold.transaction,
    network,
    payer: payment.payload.from,
    amount: payment.payload.value,
    ...(isNative(payment) && {
      blockNumber: payment.payload.blockNumber,
      confirmedAt: new Date(Number(payment.payload.blockTime) * 1000).toISOString(),
    }),
  })
  return new HttpReply(sold.body, {
    status: sold.status,
    ...(sold.contentType !== undefined && { contentType: sold.contentType }),
    headers: {
      [notice.name.toLowerCase()]: notice.value,
      'x-receipt-id': toReceiptId(sold.paymentId),
      'x-payment-id': sold.paymentId,
    },
  })
}

/** Makes the reply of a priced operation to a request that costs nothing. */
export function makeFreeReply({ status, body, contentType }: Delivery): HttpReply {
  return new HttpReply(body, { status, ...(contentType !== undefined && { contentType }) })
}
