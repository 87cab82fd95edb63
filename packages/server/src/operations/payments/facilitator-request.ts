import { Fault } from '../../base/fault.ts'
import type { PaymentMethod } from '../../services/payments/payment-ports.ts'
import type { Payments } from '../../services/payments/payments.ts'
import { readPresented } from '../../x402/payment-header.ts'
import type { PresentedPayment, SignedPayment } from '../../x402/protocol.ts'

type Body = { readonly x402Version: number; readonly paymentPayload: object }

/** Parses the payment in a request to our facilitator endpoints. */
export function parseFacilitatorBody(body: Body): PresentedPayment {
  if (body.x402Version !== 1 && body.x402Version !== 2) {
    throw new Fault('PAYMENT_MALFORMED', {
      message: '/x402Version must be 1 or 2',
      details: { field: '/x402Version' },
    })
  }
  return readPresented(body.paymentPayload, body.x402Version)
}

/** Returns a signed payment and its method; only payments to this service itself are accepted. */
export function requireSignedPayment(
  payments: Payments,
  payment: PresentedPayment,
): { payment: SignedPayment; method: PaymentMethod } {
  if ('transaction' in payment) {
    throw new Fault('PAYMENT_MALFORMED', {
      message: 'payload.txHash names a transfer that was made, where a signature belongs',
      details: { field: 'payload.txHash' },
    })
  }
  const method = payments.ports.methods.find(({ network }) => network.id === payment.network)
  if (method === undefined)
    throw new Fault('PAYMENT_MALFORMED', {
      message: `Payments on ${payment.network} are not accepted`,
    })
  return { payment, method }
}
