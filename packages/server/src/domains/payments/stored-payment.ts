import type { Payment } from '../../x402/protocol.ts'

/** A payment as its claim keeps it. */
export function paymentText(payment: Payment): string {
  return JSON.stringify(payment, (_, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  )
}

type Stored = Omit<Payment, 'payload' | 'accepted'> & {
  readonly payload: Record<
    'from' | 'to' | 'value' | 'validAfter' | 'validBefore' | 'nonce' | 'signature',
    string
  >
}

/** The payment that `paymentText` wrote. What it said it accepts was checked then and is not needed again. */
export function storedPayment(text: string): Payment {
  const { payload, version, network, scheme, receiptForm, quoteId }: Stored = JSON.parse(text)
  return {
    version,
    network,
    scheme,
    receiptForm,
    ...(quoteId !== undefined && { quoteId }),
    payload: {
      ...payload,
      value: BigInt(payload.value),
      validAfter: BigInt(payload.validAfter),
      validBefore: BigInt(payload.validBefore),
    },
  }
}

/**
 * What two payments must share to be one: every signed field, the signature, and the quote. All but the quote can be
 * read from the chain by anybody once it is settled, so the quote is what keeps others from asking for the answer.
 */
export function proofOf({ payload, quoteId }: Payment): string {
  const { from, to, value, validAfter, validBefore, nonce, signature } = payload
  return [from, to, value, validAfter, validBefore, nonce, signature, quoteId ?? ''].join(' ')
}
