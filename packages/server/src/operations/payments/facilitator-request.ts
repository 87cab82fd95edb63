import { Fault } from '../../base/fault.ts'
import type { Service } from '../../services/call.ts'
import type { Way } from '../../services/payments/purchase.ts'
import { readPresented } from '../../x402/payment-header.ts'
import type { Presented, SignedPayment } from '../../x402/protocol.ts'

type Body = { readonly x402Version: number; readonly paymentPayload: object }

/** What was sent to our facilitator endpoints. */
export function presentedIn(body: Body): Presented {
  if (body.x402Version !== 1 && body.x402Version !== 2) {
    throw new Fault('PAYMENT_MALFORMED', {
      message: '/x402Version must be 1 or 2',
      details: { field: '/x402Version' },
    })
  }
  return readPresented(body.paymentPayload, body.x402Version)
}

/** A signed payment and who settles it; only payments to this service itself are dealt with. */
export function facilitated(
  service: Service,
  payment: Presented,
): { payment: SignedPayment; way: Way } {
  if ('transaction' in payment) {
    throw new Fault('PAYMENT_MALFORMED', {
      message: 'payload.txHash names a transfer that was made, where a signature belongs',
      details: { field: 'payload.txHash' },
    })
  }
  const way = service.payments.ports.ways.find(({ network }) => network.id === payment.network)
  if (way === undefined)
    throw new Fault('PAYMENT_MALFORMED', {
      message: `Payments on ${payment.network} are not accepted`,
    })
  return { payment, way }
}
