import {
  computeSelector,
  encodeArray,
  encodeBytes,
  encodeHexWord,
  encodeNumberWord,
  wordBytes,
} from '../hex.ts'
import {
  type ChannelConfig,
  type ChannelDeposit,
  collectorAddress,
  listConfigWords,
} from './channel.ts'

/** Calls of the channel contract, as the Solidity ABI writes them. */

/** A claim by a voucher; `total` is the channel's after it. */
export type VoucherClaim = {
  readonly config: ChannelConfig
  readonly maxClaimable: bigint
  readonly signature: string
  readonly total: bigint
}

const config = '(address,address,address,address,address,uint40,bytes32)'
const selectors = {
  deposit: computeSelector(`deposit(${config},uint128,address,bytes)`),
  claim: computeSelector(`claim(((${config},uint128),bytes,uint128)[])`),
  settle: computeSelector('settle(address,address)'),
  refund: computeSelector(`refund(${config},uint128)`),
  multicall: computeSelector('multicall(bytes[])'),
  channels: computeSelector('channels(bytes32)'),
  withdrawals: computeSelector('pendingWithdrawals(bytes32)'),
  receivers: computeSelector('receivers(address,address)'),
}

/** The words of a config. */
const configWords = 7

export function encodeDepositCall(channel: ChannelConfig, deposit: ChannelDeposit): string {
  const { amount, validAfter, validBefore, salt, signature } = deposit
  const numbers = [validAfter, validBefore, salt, 4n * 32n].map(encodeNumberWord)
  const data = [...numbers, encodeBytes(signature)].join('')
  return [
    selectors.deposit,
    ...listConfigWords(channel),
    encodeNumberWord(amount),
    encodeHexWord(collectorAddress),
    encodeNumberWord((configWords + 3) * wordBytes),
    encodeBytes(`0x${data}`),
  ].join('')
}

export function encodeClaimCall(rows: readonly VoucherClaim[]): string {
  return `${selectors.claim}${encodeNumberWord(wordBytes)}${encodeArray(rows.map(encodeRow))}`
}

export function encodeSettleCall(receiver: string, token: string): string {
  return `${selectors.settle}${encodeHexWord(receiver)}${encodeHexWord(token)}`
}

export function encodeRefundCall(channel: ChannelConfig, amount: bigint): string {
  return [selectors.refund, ...listConfigWords(channel), encodeNumberWord(amount)].join('')
}

/** Several calls in one transaction: all of them, or none. */
export function encodeMulticall(calls: readonly string[]): string {
  const items = encodeArray(calls.map(encodeBytes))
  return `${selectors.multicall}${encodeNumberWord(wordBytes)}${items}`
}

export function encodeChannelRead(id: string): string {
  return `${selectors.channels}${encodeHexWord(id)}`
}

export function encodeWithdrawalRead(id: string): string {
  return `${selectors.withdrawals}${encodeHexWord(id)}`
}

export function encodeReceiverRead(receiver: string, token: string): string {
  return `${selectors.receivers}${encodeHexWord(receiver)}${encodeHexWord(token)}`
}

function encodeRow({ config: channel, maxClaimable, signature, total }: VoucherClaim): string {
  return [
    ...listConfigWords(channel),
    encodeNumberWord(maxClaimable),
    encodeNumberWord((configWords + 3) * wordBytes),
    encodeNumberWord(total),
    encodeBytes(signature),
  ].join('')
}
