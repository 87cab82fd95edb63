import type { PaymentPorts } from '../../packages/server/src/services/payments/payment-ports.ts'
import { Payments } from '../../packages/server/src/services/payments/payments.ts'
import type { Settlement } from '../../packages/server/src/x402/facilitator.ts'
import type { TestService } from '../support/service.ts'
import { replacePayments } from './dying-payments.ts'
import { replaceFacilitators } from './false-facilitators.ts'

type Meanwhile = {
  readonly before?: () => Promise<void>
  /** Runs after the transfer is on the chain, and before the service hears of it. */
  readonly after?: () => Promise<void>
}

/** The payments of a process that settles by `around`, which is given the way that the network settles. */
export function makeSettlingPayments(
  ports: PaymentPorts,
  around: (settle: () => Promise<Settlement>) => Promise<Settlement>,
): Payments {
  const settling = replaceFacilitators(ports, (real) => ({
    settle: (...given) => around(() => real.settle(...given)),
  }))
  return new Payments(settling)
}

/** Does the work with payments during whose settlement, which is real, `meanwhile` runs. */
export async function runWhileSettling<T>(
  service: TestService,
  meanwhile: Meanwhile,
  work: () => Promise<T>,
): Promise<T> {
  const ports: PaymentPorts = service.running.service.payments.ports
  const payments = makeSettlingPayments(ports, async (settle) => {
    await meanwhile.before?.()
    const outcome = await settle()
    await meanwhile.after?.()
    return outcome
  })
  replacePayments(service, payments)
  try {
    return await work()
  } finally {
    replacePayments(service, new Payments(ports))
  }
}
