import {
  type AbiFunction,
  decodeAbiParameters,
  type Hex,
  numberToHex,
  toFunctionSelector,
} from 'viem'
import {
  type ChannelConfig,
  computeChannelId,
  computeDepositNonce,
  escrowAddress,
} from '../../packages/server/src/x402/channels/channel.ts'
import { channelEscrow } from '../../packages/server/src/x402/channels/contracts.ts'
import { type EscrowBooks, type EscrowCall, readChannel, readReceiver } from './escrow-model.ts'
import type { Transfer } from './token-forms.ts'

/** The functions of the contract by their selectors; viem would hash all of them for each call. */
const functions = new Map(
  channelEscrow.abi.flatMap((item): [Hex, AbiFunction][] =>
    item.type === 'function' ? [[toFunctionSelector(item), item]] : [],
  ),
)

type Decoded = { readonly name: string; readonly args: readonly unknown[] }
type RawConfig = Readonly<Record<keyof ChannelConfig, unknown>>
type RawRow = {
  readonly voucher: { readonly channel: RawConfig; readonly maxClaimableAmount: bigint }
  readonly signature: string
  readonly totalClaimed: bigint
}

function decode(data: Hex): Decoded {
  const found = functions.get(data.slice(0, 10) as Hex)
  if (found === undefined) throw new Error(`the channel contract has no ${data.slice(0, 10)}`)
  const args = decodeAbiParameters(found.inputs, `0x${data.slice(10)}`)
  return { name: found.name, args: args as readonly unknown[] }
}

/** Decodes a transaction to the channel contract: its calls in their order, and the authorization that a deposit uses. */
export function decodeEscrowCalls(
  chainId: number,
  data: Hex,
): { readonly calls: readonly EscrowCall[]; readonly transfer?: Transfer } {
  const { name, args } = decode(data)
  if (name === 'multicall')
    return { calls: (args[0] as Hex[]).flatMap((one) => decodeEscrowCalls(chainId, one).calls) }
  if (name === 'claim') {
    const rows = (args[0] as RawRow[]).map(({ voucher, signature, totalClaimed }) => ({
      config: toConfig(voucher.channel),
      maxClaimable: voucher.maxClaimableAmount,
      signature,
      total: totalClaimed,
    }))
    return { calls: [{ kind: 'claim', rows }] }
  }
  if (name === 'settle') {
    const [receiver, token] = args.map((one) => String(one).toLowerCase())
    return { calls: [{ kind: 'settle', receiver: receiver ?? '', token: token ?? '' }] }
  }
  const config = toConfig(args[0] as RawConfig)
  const amount = args[1] as bigint
  if (name === 'finalizeWithdraw') return { calls: [{ kind: name, config }] }
  if (name === 'refund' || name === 'initiateWithdraw')
    return { calls: [{ kind: name, config, amount }] }
  if (name !== 'deposit') throw new Error(`nobody calls ${name} of the channel contract`)
  const [, validBefore, salt] = decodeAbiParameters(collectorData, args[3] as Hex)
  const nonce = computeDepositNonce(computeChannelId(chainId, config), salt)
  const transfer = { from: config.payer, to: escrowAddress, value: amount, validBefore, nonce }
  return { calls: [{ kind: name, config, amount }], transfer }
}

const collectorData = [
  { type: 'uint256' },
  { type: 'uint256' },
  { type: 'uint256' },
  { type: 'bytes' },
] as const

/** Answers a question about the books; undefined where the call is none. */
export function answerEscrow(books: EscrowBooks, data: Hex): string | undefined {
  const { name, args } = decode(data)
  const [first, second] = args.map((one) => String(one).toLowerCase())
  if (name === 'receivers') {
    const { claimed, settled } = readReceiver(books, first ?? '', second ?? '')
    return encodeWords(claimed, settled)
  }
  const channel = readChannel(books, first ?? '')
  if (name === 'channels') return encodeWords(channel.balance, channel.claimed)
  if (name === 'pendingWithdrawals')
    return encodeWords(channel.withdrawing, channel.withdrawingSince)
  return undefined
}

function encodeWords(...words: readonly bigint[]): string {
  return `0x${words.map((one) => numberToHex(one, { size: 32 }).slice(2)).join('')}`
}

function toConfig(raw: RawConfig): ChannelConfig {
  const lower = (name: keyof ChannelConfig) => String(raw[name]).toLowerCase()
  return {
    payer: lower('payer'),
    payerAuthorizer: lower('payerAuthorizer'),
    receiver: lower('receiver'),
    receiverAuthorizer: lower('receiverAuthorizer'),
    token: lower('token'),
    withdrawDelay: Number(raw.withdrawDelay),
    salt: lower('salt'),
  }
}
