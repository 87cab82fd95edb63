import { isSweep } from '../../../x402/deposit-address.ts'
import { type Facilitator, getNowSeconds, isSound } from '../../../x402/facilitator.ts'
import {
  isNative,
  type Payment,
  type Requirement,
  type SignedPayment,
} from '../../../x402/protocol.ts'
import { toUnreachable } from '../../../x402/rpc.ts'
import type { PaymentMethod, PaymentPorts, Settler } from '../payment-ports.ts'

/** Makes the settler that checks and settles this payment. */
export function makeSettler(
  ports: Pick<PaymentPorts, 'depositSecret' | 'world'>,
  method: PaymentMethod,
  due: { payment: Payment; requirement: Requirement },
): Settler {
  const { payment, requirement } = due
  if (!isNative(payment)) {
    const facilitator = payment.upto === undefined ? method.facilitator : method.upto
    if (facilitator === undefined)
      throw toUnreachable(new Error(`${method.network.id} takes no payments of its scheme now`))
    return makeSignedSettler(ports, facilitator, { payment, requirement })
  }
  const { native } = method
  if (native === undefined) throw toUnreachable(new Error(`${method.network.id} has no node now`))
  const settle = () => native.settle(payment)
  // It was found on the chain, and judged, before anything was claimed.
  return {
    isSound: () => true,
    isUsed: async () => true,
    verify: async () => ({ ok: true }),
    readFunds: async () => undefined,
    findUse: settle,
    settle,
    lookup: settle,
  }
}

function makeSignedSettler(
  { depositSecret, world }: Pick<PaymentPorts, 'depositSecret' | 'world'>,
  facilitator: Facilitator,
  { payment, requirement }: { payment: SignedPayment; requirement: Requirement },
): Settler {
  // No quote's own address ever signs a permit.
  const isOurs = payment.upto === undefined && isSweep(depositSecret, payment.payload)
  return {
    isSound: () => !isOurs && isSound(payment, requirement, getNowSeconds(world)),
    isUsed: () => facilitator.isUsed(payment, requirement),
    verify: async () => {
      if (!isOurs) return facilitator.verify(payment, requirement)
      const field = 'payload.authorization.from'
      const detail = 'must not be an address of this service'
      return { ok: false, reason: 'mismatch', field, detail }
    },
    findUse: () => facilitator.findUse(payment, requirement),
    readFunds: async () => facilitator.readFunds?.(payment, requirement),
    settle: (id) => facilitator.settle(id, payment, requirement),
    lookup: (id) => facilitator.lookup(id, payment, requirement),
  }
}
