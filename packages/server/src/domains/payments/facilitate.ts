import { Fault } from '../../base/fault.ts'
import { readPayment } from '../../x402/payment-header.ts'
import type { Payment } from '../../x402/protocol.ts'
import type { Service } from '../call.ts'
import type { Way } from './purchase.ts'

/** A payment sent to our facilitator endpoints; only payments to this service itself are dealt with. */
export function facilitated(
  service: Service,
  body: { x402Version: number; paymentPayload: object },
): { payment: Payment; way: Way } {
  if (body.x402Version !== 1 && body.x402Version !== 2) {
    throw new Fault('PAYMENT_MALFORMED', {
      message: '/x402Version must be 1 or 2',
      details: { field: '/x402Version' },
    })
  }
  const payment = readPayment(body.paymentPayload, body.x402Version)
  const way = service.payments.ports.ways.find(({ network }) => network.id === payment.network)
  if (way === undefined)
    throw new Fault('PAYMENT_MALFORMED', {
      message: `Payments on ${payment.network} are not accepted`,
    })
  return { payment, way }
}
