import { limits } from '@tollbase/contract/limits'
import type { World } from '../../base/world.ts'
import type { Verification } from '../facilitator.ts'
import type { PaymentNetwork } from '../networks.ts'
import { getNowSeconds, isTooLate } from '../validity.ts'
import type { UptoPayment } from './upto.ts'

/** The network of a payment and our key, by its address, that takes it. */
type UptoTaker = {
  readonly network: PaymentNetwork
  readonly sender: { readonly address: string }
  readonly world: World
}

/** Checks everything of an `upto` payment that needs nobody but the clock; signature and funds are checked after it. */
export function checkUptoPayment(
  { network, sender, world }: UptoTaker,
  { accepted, payload, upto, network: id }: UptoPayment,
  amount: bigint,
): Verification {
  const at = 'payload.permit2Authorization'
  const terms: readonly (readonly [field: string, given: unknown, expected: unknown])[] = [
    ['network', id, network.id],
    ['accepted.amount', accepted?.amount ?? upto.permitted, upto.permitted],
    ['accepted.asset', accepted?.asset ?? network.asset.address, network.asset.address],
    ['accepted.payTo', accepted?.payTo ?? network.payTo, network.payTo],
    [`${at}.witness.to`, payload.to, network.payTo],
    [`${at}.witness.facilitator`, upto.facilitator, sender.address],
  ]
  for (const [field, given, expected] of terms)
    if (given !== expected)
      return { ok: false, reason: 'mismatch', field, detail: `must be ${expected}` }
  if (upto.permitted < amount) {
    const detail = `must be ${amount} or more`
    return { ok: false, reason: 'mismatch', field: `${at}.permitted.amount`, detail }
  }
  // The payment would be booked as a deposit, though nothing came in.
  if (payload.from === network.payTo)
    return { ok: false, reason: 'mismatch', field: `${at}.from`, detail: 'must not be the payee' }
  const now = getNowSeconds(world)
  if (payload.validAfter > now)
    return { ok: false, reason: 'not_yet_valid', field: `${at}.witness.validAfter` }
  if (isTooLate(payload, now)) return { ok: false, reason: 'expired', field: `${at}.deadline` }
  if (payload.validBefore > now + BigInt(limits.authorizationSecondsMax))
    return { ok: false, reason: 'valid_too_long', field: `${at}.deadline` }
  return { ok: true }
}
