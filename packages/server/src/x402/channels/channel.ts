import { LRUCache } from 'lru-cache'
import { decodeHex, encodeHex, encodeHexWord, encodeNumberWord, hashKeccak } from '../hex.ts'
import type { PaymentNetwork } from '../networks.ts'
import {
  digestTyped,
  getDomainSeparator,
  hashDomain,
  hashTypeName,
  listAuthorizationWords,
  recoverSigner,
} from '../signature.ts'

/** The address of the channel contract, on every chain; lower case as all of our addresses. */
export const escrowAddress = '0x4020074e9df2ce1dee5a9c1b5c3f541d02a10003'
/** The address of the contract that brings deposits in by EIP-3009 authorizations. */
export const collectorAddress = '0x4020806089470a89826cb9fb1f4059150b550004'

/** All that makes a channel the one that it is; addresses and salt in lower case. */
export type ChannelConfig = {
  readonly payer: string
  /** Signs the vouchers. */
  readonly payerAuthorizer: string
  readonly receiver: string
  /** May claim and refund beside the receiver. */
  readonly receiverAuthorizer: string
  readonly token: string
  /** The time that the payer must wait for what it takes back by itself, in seconds. */
  readonly withdrawDelay: number
  /** 32 bytes: a payer may have several channels. */
  readonly salt: string
}

/** A promise of the payer: the receiver may claim so much of the channel, ever. */
export type Voucher = {
  /** 32 bytes. */
  readonly channelId: string
  /** Atomic units. */
  readonly maxClaimable: bigint
  /** r, s, v: 65 bytes, v is 27 or 28. */
  readonly signature: string
}

/** The authorization that fills a channel. */
export type ChannelDeposit = {
  /** Atomic units. */
  readonly amount: bigint
  /** Seconds since 1970, like validBefore. */
  readonly validAfter: bigint
  readonly validBefore: bigint
  /** 256 bits; with the channel's id it makes the nonce. */
  readonly salt: bigint
  readonly signature: string
}

const configType = hashTypeName(
  'ChannelConfig(address payer,address payerAuthorizer,address receiver,address receiverAuthorizer,address token,uint40 withdrawDelay,bytes32 salt)',
)
const voucherType = hashTypeName('Voucher(bytes32 channelId,uint128 maxClaimableAmount)')
const receiveType = hashTypeName(
  'ReceiveWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)',
)

const separators = new Map<number, string>()

/**
 * Returns true if the payer itself signs the vouchers. Anybody can open a channel in the name of any payer, and sign its
 * vouchers: the contract takes money for it from whoever gives it.
 */
export function isSignedByPayer({
  payer,
  payerAuthorizer,
}: Pick<ChannelConfig, 'payer' | 'payerAuthorizer'>): boolean {
  return payer === payerAuthorizer
}

/** Lists the words of a config, in the order of tuple and type. */
export function listConfigWords(config: ChannelConfig): readonly string[] {
  const { payer, payerAuthorizer, receiver, receiverAuthorizer, token } = config
  const addresses = [payer, payerAuthorizer, receiver, receiverAuthorizer, token]
  return [
    ...addresses.map(encodeHexWord),
    encodeNumberWord(config.withdrawDelay),
    encodeHexWord(config.salt),
  ]
}

/** Each voucher brings the config of its channel again, and an id takes four rounds of keccak. */
const ids = new LRUCache<string, string>({ max: 10_000 })

/** Computes the id of a channel, which no other channel has on any chain. */
export function computeChannelId(chainId: number, config: ChannelConfig): string {
  const words = listConfigWords(config)
  const name = [chainId, ...words].join(' ')
  const known = ids.get(name)
  if (known !== undefined) return known
  const id = encodeHex(digestTyped(getSeparator(chainId), configType, words))
  ids.set(name, id)
  return id
}

/** Returns true if the channel's authorizer signed the voucher in the one form that the contract takes. */
export function isVoucherSigned(
  chainId: number,
  { payerAuthorizer }: Pick<ChannelConfig, 'payerAuthorizer'>,
  { channelId, maxClaimable, signature }: Voucher,
): boolean {
  const words = [encodeHexWord(channelId), encodeNumberWord(maxClaimable)]
  const digest = digestTyped(getSeparator(chainId), voucherType, words)
  return recoverSigner(digest, decodeHex(signature)) === payerAuthorizer
}

/** Computes the nonce of the authorization of a deposit. */
export function computeDepositNonce(channelId: string, salt: bigint): string {
  const words = encodeHexWord(channelId) + encodeNumberWord(salt)
  return encodeHex(hashKeccak(Buffer.from(words, 'hex')))
}

/** Returns true if the payer signed this deposit of the network's token into its channel. */
export function isDepositSigned(
  network: PaymentNetwork,
  { payer, channelId }: { readonly payer: string; readonly channelId: string },
  { amount, salt, validAfter, validBefore, signature }: ChannelDeposit,
): boolean {
  const words = listAuthorizationWords({
    ...{ from: payer, to: collectorAddress, value: amount, validAfter, validBefore },
    nonce: computeDepositNonce(channelId, salt),
  })
  const digest = digestTyped(getDomainSeparator(network), receiveType, words)
  return recoverSigner(digest, decodeHex(signature)) === payer
}

function getSeparator(chainId: number): string {
  const known = separators.get(chainId)
  if (known !== undefined) return known
  const domain = { name: 'x402 Batch Settlement', version: '1', chainId, address: escrowAddress }
  const separator = hashDomain(domain)
  separators.set(chainId, separator)
  return separator
}
