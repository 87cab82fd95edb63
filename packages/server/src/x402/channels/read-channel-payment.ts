import {
  type Fields,
  makeMalformedFault,
  parseHex,
  parseObject,
  parseText,
  parseUint,
  refuseOtherKeys,
} from '../payment-fields.ts'
import type { StrictJson } from '../strict-json.ts'
import type { ChannelConfig, ChannelDeposit, Voucher } from './channel.ts'
import { channelScheme } from './channel-offer.ts'
import type { AcceptedChannel, ChannelPayment } from './channel-payment.ts'

const uint128Max = 2n ** 128n - 1n
const quoteCharsMax = 1_000

/** Reads a payment of the scheme `batch-settlement`: anything that two readers could take differently is refused. */
export function readChannelPayment(fields: Fields): ChannelPayment {
  const given = parseObject(fields.accepted, 'accepted')
  const accepted = readAccepted(given)
  const payload = parseObject(fields.payload, 'payload')
  const type = parseText(payload.type, 'payload.type')
  const common = {
    scheme: channelScheme,
    network: accepted.network,
    quoteId: readQuoteId(given),
    accepted,
    config: readConfig(parseObject(payload.channelConfig, 'payload.channelConfig')),
    voucher: readVoucher(parseObject(payload.voucher, 'payload.voucher')),
  } as const
  if (type === 'voucher') {
    refuseOtherKeys(payload, ['type', 'channelConfig', 'voucher'], 'payload')
    return common
  }
  if (type === 'deposit') {
    refuseOtherKeys(payload, ['type', 'channelConfig', 'voucher', 'deposit'], 'payload')
    return { ...common, deposit: readDeposit(parseObject(payload.deposit, 'payload.deposit')) }
  }
  if (type !== 'refund')
    throw makeMalformedFault('payload.type', 'must be "voucher", "deposit" or "refund"')
  refuseOtherKeys(payload, ['type', 'channelConfig', 'voucher', 'amount'], 'payload')
  if (payload.amount === undefined) return { ...common, refund: {} }
  return { ...common, refund: { amount: parseAmount(payload.amount, 'payload.amount') } }
}

function readAccepted(given: Fields): AcceptedChannel {
  const network = parseText(given.network, 'accepted.network')
  if (!/^eip155:[1-9]\d{0,15}$/.test(network))
    throw makeMalformedFault('accepted.network', 'must be CAIP-2, such as eip155:8453')
  return {
    network,
    amount: parseAmount(given.amount, 'accepted.amount'),
    asset: parseHex(given.asset, 20, 'accepted.asset'),
    payTo: parseHex(given.payTo, 20, 'accepted.payTo'),
  }
}

/** Without the quote, who reads the voucher from the chain could fetch what it bought. */
function readQuoteId(given: Fields): string {
  const extra = parseObject(given.extra, 'accepted.extra')
  const quoteId = parseText(extra.quoteId, 'accepted.extra.quoteId')
  if (quoteId === '' || quoteId.length > quoteCharsMax)
    throw makeMalformedFault('accepted.extra.quoteId', `must have 1 to ${quoteCharsMax} characters`)
  return quoteId
}

function readConfig(given: Fields): ChannelConfig {
  const at = (name: string) => `payload.channelConfig.${name}`
  const address = (name: keyof ChannelConfig) => parseHex(given[name], 20, at(name))
  const names = ['payer', 'payerAuthorizer', 'receiver', 'receiverAuthorizer', 'token'] as const
  refuseOtherKeys(given, [...names, 'withdrawDelay', 'salt'], 'payload.channelConfig')
  const delay = given.withdrawDelay
  if (typeof delay !== 'number' || !Number.isSafeInteger(delay) || delay < 0 || delay >= 2 ** 40)
    throw makeMalformedFault(at('withdrawDelay'), 'must be a whole number of seconds')
  return {
    payer: address('payer'),
    payerAuthorizer: address('payerAuthorizer'),
    receiver: address('receiver'),
    receiverAuthorizer: address('receiverAuthorizer'),
    token: address('token'),
    withdrawDelay: delay,
    salt: parseHex(given.salt, 32, at('salt')),
  }
}

function readVoucher(given: Fields): Voucher {
  refuseOtherKeys(given, ['channelId', 'maxClaimableAmount', 'signature'], 'payload.voucher')
  return {
    channelId: parseHex(given.channelId, 32, 'payload.voucher.channelId'),
    maxClaimable: parseAmount(given.maxClaimableAmount, 'payload.voucher.maxClaimableAmount'),
    signature: parseHex(given.signature, 65, 'payload.voucher.signature'),
  }
}

function readDeposit(given: Fields): ChannelDeposit {
  const at = 'payload.deposit.authorization'
  refuseOtherKeys(given, ['amount', 'authorization'], 'payload.deposit')
  const authorization = parseObject(given.authorization, at)
  refuseOtherKeys(authorization, ['erc3009Authorization'], at)
  const signed = parseObject(authorization.erc3009Authorization, `${at}.erc3009Authorization`)
  refuseOtherKeys(signed, ['validAfter', 'validBefore', 'salt', 'signature'], at)
  return {
    amount: parseAmount(given.amount, 'payload.deposit.amount'),
    validAfter: parseUint(signed.validAfter, `${at}.validAfter`),
    validBefore: parseUint(signed.validBefore, `${at}.validBefore`),
    salt: BigInt(parseHex(signed.salt, 32, `${at}.salt`)),
    signature: parseHex(signed.signature, 65, `${at}.signature`),
  }
}

/** Parses an amount of the contract, which has 128 bits. */
function parseAmount(value: StrictJson | undefined, field: string): bigint {
  const amount = parseUint(value, field)
  if (amount > uint128Max) throw makeMalformedFault(field, 'must have 128 bits at most')
  return amount
}
