import type { World } from '../base/world.ts'
import type { ExactPayment } from './protocol.ts'

/** The margin before validBefore by which a settlement must be sent for a block to take it. */
const settleMarginSeconds = 6n

/** The margin by which a block's time may lie behind the wall clock. */
const clockMarginSeconds = 60n

export function getNowSeconds(world: World): bigint {
  return BigInt(Math.floor(world.now() / 1000))
}

/** Returns true where a payment is not sent any more: no block would take it in time, and it would only cost gas. */
export function isTooLate(
  { validBefore }: Pick<ExactPayment, 'validBefore'>,
  nowSeconds: bigint,
): boolean {
  return validBefore < nowSeconds + settleMarginSeconds
}

/** Returns true once the authorization is over by our clock. */
export function isExpired(world: World, payment: Pick<ExactPayment, 'validBefore'>): boolean {
  return isOverBy(getNowSeconds(world), payment)
}

/** Returns true once the authorization is over by this time, also for a block whose time lies a little behind. */
export function isOverBy(
  seconds: bigint,
  { validBefore }: Pick<ExactPayment, 'validBefore'>,
): boolean {
  return seconds > validBefore + clockMarginSeconds
}
