import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { PaymentPorts, Way } from '../../packages/server/src/services/payments/purchase.ts'
import type { TestService } from '../support/service.ts'
import { replacePayments } from './dying-payments.ts'

type Meanwhile = {
  readonly before?: () => Promise<void>
  /** After the transfer is on the chain, and before the service hears of it. */
  readonly after?: () => Promise<void>
}

/** Does the work with payments whose settlement, real as ever, is accompanied by something else. */
export async function whileSettling<T>(
  service: TestService,
  meanwhile: Meanwhile,
  work: () => Promise<T>,
): Promise<T> {
  const ports: PaymentPorts = service.running.service.payments.ports
  const ways = ports.ways.map(
    (way): Way => ({
      ...way,
      facilitator: {
        ...way.facilitator,
        settle: async (...given) => {
          await meanwhile.before?.()
          const outcome = await way.facilitator.settle(...given)
          await meanwhile.after?.()
          return outcome
        },
      },
    }),
  )
  replacePayments(service, new Payments({ ...ports, ways }))
  try {
    return await work()
  } finally {
    replacePayments(service, new Payments(ports))
  }
}
