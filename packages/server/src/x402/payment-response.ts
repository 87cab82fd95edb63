import type { PaymentNetwork } from './networks.ts'
import { encodeHeader } from './payment-required.ts'
import type { Payment } from './protocol.ts'

/** The facts about a settlement that the payer is told. */
type SettlementNotice = {
  readonly success: boolean
  /** Hash of the transaction, empty when none was sent. */
  readonly transaction: string
  readonly network: PaymentNetwork
  readonly payer: string
  /** The amount that the transaction moved, or that the payer's balance was charged. */
  readonly amount: bigint
  /** There where nothing was sent, and the payer's balance was charged instead. */
  readonly paidFrom?: 'balance'
  readonly errorReason?: string
  readonly blockNumber?: bigint
  /** ISO 8601. */
  readonly confirmedAt?: string
}

/** Returns the name and value of the response header that tells the payer about its settlement. */
export function encodeSettlement(
  payment: Pick<Payment, 'version' | 'receiptForm'>,
  notice: SettlementNotice,
): { readonly name: string; readonly value: string } {
  const { success, transaction, network, payer, amount, errorReason, paidFrom } = notice
  const receipt = {
    success,
    transaction,
    network: payment.version === 1 ? network.v1Name : network.id,
    payer,
    amount: amount.toString(),
    ...(paidFrom === undefined ? {} : { paid_from: paidFrom }),
    ...(errorReason === undefined ? {} : { errorReason }),
  }
  if (payment.version === 2) return { name: 'PAYMENT-RESPONSE', value: encodeHeader(receipt) }
  const name = 'X-PAYMENT-RESPONSE'
  if (payment.receiptForm === 'base64') return { name, value: encodeHeader(receipt) }
  // The further names are those that the public SDK reads.
  const sdk = {
    txHash: transaction,
    ...(notice.blockNumber === undefined ? {} : { blockHeight: Number(notice.blockNumber) }),
    ...(notice.confirmedAt === undefined ? {} : { confirmedAt: notice.confirmedAt }),
  }
  return { name, value: JSON.stringify({ ...receipt, ...sdk }) }
}
