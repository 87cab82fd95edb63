import type {
  PaymentMethod,
  PaymentPorts,
} from '../../packages/server/src/services/payments/payment-ports.ts'
import type { Facilitator } from '../../packages/server/src/x402/facilitator.ts'

/**
 * The ports with false facilitators on all networks: each is the real one, but for the members that `change` makes
 * from it.
 */
export function replaceFacilitators<Ports extends Pick<PaymentPorts, 'methods'>>(
  ports: Ports,
  change: (real: Facilitator) => Partial<Facilitator>,
): Ports {
  const methods = ports.methods.map(
    (method): PaymentMethod => ({
      ...method,
      facilitator: { ...method.facilitator, ...change(method.facilitator) },
    }),
  )
  return { ...ports, methods }
}
