import type {
  PaymentMethod,
  PaymentPorts,
} from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { TestService } from '../support/service.ts'
import { replacePayments } from './dying-payments.ts'

type Meanwhile = {
  readonly before?: () => Promise<void>
  /** Runs after the transfer is on the chain, and before the service hears of it. */
  readonly after?: () => Promise<void>
}

/** Does the work with payments during whose settlement, which is real, `meanwhile` runs. */
export async function runWhileSettling<T>(
  service: TestService,
  meanwhile: Meanwhile,
  work: () => Promise<T>,
): Promise<T> {
  const ports: PaymentPorts = service.running.service.payments.ports
  const methods = ports.methods.map(
    (method): PaymentMethod => ({
      ...method,
      facilitator: {
        ...method.facilitator,
        settle: async (...given) => {
          await meanwhile.before?.()
          const outcome = await method.facilitator.settle(...given)
          await meanwhile.after?.()
          return outcome
        },
      },
    }),
  )
  replacePayments(service, new Payments({ ...ports, methods }))
  try {
    return await work()
  } finally {
    replacePayments(service, new Payments(ports))
  }
}
