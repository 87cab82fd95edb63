/** A receipt is named after its payment. */
export function toReceiptId(paymentId: string): string {
  return paymentId.replace(/^pay_/, 'rcpt_')
}

export function findPaymentId(receiptId: string): string | undefined {
  return /^rcpt_[0-9a-f]{32}$/.test(receiptId) ? receiptId.replace(/^rcpt_/, 'pay_') : undefined
}
