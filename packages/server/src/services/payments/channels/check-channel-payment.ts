import { limits } from '@tollbase/contract/limits'
import {
  computeChannelId,
  isDepositSigned,
  isVoucherSigned,
} from '../../../x402/channels/channel.ts'
import type { ChannelPayment } from '../../../x402/channels/channel-payment.ts'
import type { ChannelMethod } from './channel-register.ts'

/** The names of refusals that stock clients know begin with this. */
const prefix = 'invalid_batch_settlement_evm_'
/** Stock clients mend their books when they are told this, and this alone. */
export const mismatch = `${prefix}cumulative_amount_mismatch`
export const formatChannelRefusal = (name: string) => `${prefix}${name}`

/** The time by which a deposit must be sent before its authorization ends, in seconds. */
const sendMarginSeconds = 6n

/** Finds what is wrong with a payment that can be told without asking anybody; undefined where it is right. */
export function findChannelProblem(
  { network, escrow }: ChannelMethod,
  { accepted, config, voucher }: ChannelPayment,
): string | undefined {
  const terms: readonly (readonly [name: string, given: unknown, expected: unknown])[] = [
    ['asset_mismatch', accepted.asset, network.asset.address],
    ['receiver_mismatch', accepted.payTo, network.payTo],
    ['receiver_mismatch', config.receiver, network.payTo],
    ['token_mismatch', config.token, network.asset.address],
    ['receiver_authorizer_mismatch', config.receiverAuthorizer, escrow.authorizer],
    ['withdraw_delay_mismatch', config.withdrawDelay, limits.channelWithdrawSeconds],
    ['channel_id_mismatch', voucher.channelId, computeChannelId(network.chainId, config)],
  ]
  const wrong = terms.find(([, given, expected]) => given !== expected)
  if (wrong !== undefined) return formatChannelRefusal(wrong[0])
  // A payer without a key of its own would cost a look at the chain each time.
  if (/^0x0+$/.test(config.payerAuthorizer))
    return formatChannelRefusal('authorizer_not_configured')
  // Money of ours would be charged for itself.
  if (config.payer === network.payTo) return formatChannelRefusal('receiver_mismatch')
  if (!isVoucherSigned(network.chainId, config, voucher))
    return formatChannelRefusal('voucher_signature')
  return undefined
}

/** Finds what is wrong with a deposit, before it costs gas. */
export function findDepositProblem(
  { network }: ChannelMethod,
  { config, voucher, deposit }: ChannelPayment,
  nowSeconds: bigint,
): string | undefined {
  if (deposit === undefined) return undefined
  if (deposit.amount < limits.channelDepositAtomicMin)
    return formatChannelRefusal('deposit_below_min_deposit')
  if (deposit.validAfter > nowSeconds)
    return formatChannelRefusal('payload_authorization_valid_after')
  if (
    deposit.validBefore < nowSeconds + sendMarginSeconds ||
    deposit.validBefore > nowSeconds + BigInt(limits.authorizationSecondsMax)
  )
    return formatChannelRefusal('payload_authorization_valid_before')
  const by = { payer: config.payer, channelId: voucher.channelId }
  if (!isDepositSigned(network, by, deposit))
    return formatChannelRefusal('receive_authorization_signature')
  return undefined
}
