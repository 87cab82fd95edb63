import { type Hex, hashTypedData, hexToBytes } from 'viem'
import {
  type ChannelConfig,
  collectorAddress,
  computeDepositNonce,
  escrowAddress,
} from '../../packages/server/src/x402/channels/channel.ts'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import { signDigest } from '../../packages/server/src/x402/signature.ts'

/** Signs a voucher as stock clients do. */
export function signVoucher(
  { chainId }: PaymentNetwork,
  key: Buffer,
  voucher: { readonly channelId: string; readonly maxClaimable: bigint },
): string {
  const digest = hashTypedData({
    domain: {
      name: 'x402 Batch Settlement',
      version: '1',
      chainId,
      verifyingContract: escrowAddress,
    },
    types: {
      Voucher: [
        { name: 'channelId', type: 'bytes32' },
        { name: 'maxClaimableAmount', type: 'uint128' },
      ],
    },
    primaryType: 'Voucher',
    message: { channelId: voucher.channelId as Hex, maxClaimableAmount: voucher.maxClaimable },
  })
  return signDigest(hexToBytes(digest), key)
}

/** Signs the authorization that brings a deposit into a channel, as a payment carries it. */
export function signDeposit(
  { chainId, asset }: PaymentNetwork,
  given: {
    readonly key: Buffer
    readonly config: ChannelConfig
    readonly channelId: string
    readonly amount: bigint
    /** Seconds since 1970. */
    readonly validBefore: number
    /** 32 bytes. */
    readonly salt: string
  },
) {
  const { key, config, channelId, amount, validBefore, salt } = given
  const nonce = computeDepositNonce(channelId, BigInt(salt))
  const digest = hashTypedData({
    domain: {
      name: asset.name,
      version: asset.version,
      chainId,
      verifyingContract: asset.address as Hex,
    },
    types: {
      ReceiveWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'ReceiveWithAuthorization',
    message: {
      from: config.payer as Hex,
      to: collectorAddress,
      value: amount,
      validAfter: 0n,
      validBefore: BigInt(validBefore),
      nonce: nonce as Hex,
    },
  })
  const erc3009Authorization = {
    validAfter: '0',
    validBefore: String(validBefore),
    salt,
    signature: signDigest(hexToBytes(digest), key),
  }
  return { amount: String(amount), authorization: { erc3009Authorization } }
}
