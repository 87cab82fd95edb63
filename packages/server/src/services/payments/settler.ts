import { isSweep } from '../../x402/deposit-address.ts'
import {
  isNative,
  type Payment,
  type Requirement,
  type SignedPayment,
} from '../../x402/protocol.ts'
import { unreachable } from '../../x402/rpc.ts'
import type { PaymentPorts, Settler, Way } from './purchase.ts'

/** Who checks and settles this payment. */
export function settlerOf(
  ports: Pick<PaymentPorts, 'depositSecret'>,
  way: Way,
  due: { payment: Payment; requirement: Requirement },
): Settler {
  const { payment, requirement } = due
  if (!isNative(payment)) return signedSettler(ports, way, { payment, requirement })
  const { native } = way
  if (native === undefined) throw unreachable(new Error(`${way.network.id} has no node now`))
  const settle = () => native.settle(payment)
  // It was found on the chain, and judged, before anything was claimed.
  return { verify: async () => ({ ok: true }), findUse: settle, settle, lookup: settle }
}

function signedSettler(
  { depositSecret }: Pick<PaymentPorts, 'depositSecret'>,
  { facilitator }: Way,
  { payment, requirement }: { payment: SignedPayment; requirement: Requirement },
): Settler {
  return {
    verify: async () => {
      if (!isSweep(depositSecret, payment.payload)) return facilitator.verify(payment, requirement)
      const field = 'payload.authorization.from'
      const detail = 'must not be an address of this service'
      return { ok: false, reason: 'mismatch', field, detail }
    },
    findUse: () => facilitator.findUse(payment, requirement),
    settle: (id) => facilitator.settle(id, payment, requirement),
    lookup: (id) => facilitator.lookup(id, payment, requirement),
  }
}
