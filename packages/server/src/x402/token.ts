import {
  computeSelector,
  computeTopic,
  decodeHex,
  encodeHexWord,
  encodeNumberWord,
  isHash,
  wordBytes,
} from './hex.ts'
import type { PaymentNetwork } from './networks.ts'
import type { ExactPayment } from './protocol.ts'

/** Calls and events of EIP-3009 tokens. */

/** A log as JSON-RPC gives it, hexadecimal text in lower case. */
export type Log = {
  readonly address: string
  readonly topics: readonly string[]
  readonly data: string
  readonly transactionHash: string
}

/**
 * The gas limit of one transferWithAuthorization: 66,000 are used if the payee already has a balance, 86,000 if
 * not; USDC behind its proxy takes some thousands more.
 */
export const transferGas = 150_000n

const selectors = {
  transfer: computeSelector(
    'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  ),
  state: computeSelector('authorizationState(address,bytes32)'),
  balance: computeSelector('balanceOf(address)'),
}

export const topics = {
  transfer: computeTopic('Transfer(address,address,uint256)'),
  used: computeTopic('AuthorizationUsed(address,bytes32)'),
  canceled: computeTopic('AuthorizationCanceled(address,bytes32)'),
}

/** Encodes the form with v, r and s apart, which every version of USDC has. */
export function encodeTransferCall(payment: ExactPayment): string {
  const signature = decodeHex(payment.signature)
  return [
    selectors.transfer,
    encodeHexWord(payment.from),
    encodeHexWord(payment.to),
    encodeNumberWord(payment.value),
    encodeNumberWord(payment.validAfter),
    encodeNumberWord(payment.validBefore),
    encodeHexWord(payment.nonce),
    encodeNumberWord(signature[64] ?? 0),
    signature.toString('hex', 0, 64),
  ].join('')
}

/** Decodes the call of a transfer with its signature apart; undefined where it is not one. */
export function parseTransferCall(data: string): Omit<ExactPayment, 'signature'> | undefined {
  const bytes = decodeHex(data).subarray(4)
  if (!data.startsWith(selectors.transfer) || bytes.length !== 9 * wordBytes) return undefined
  const word = (at: number) => bytes.toString('hex', at * wordBytes, (at + 1) * wordBytes)
  const number = (at: number) => BigInt(`0x${word(at)}`)
  return {
    from: `0x${word(0).slice(24)}`,
    to: `0x${word(1).slice(24)}`,
    value: number(2),
    validAfter: number(3),
    validBefore: number(4),
    nonce: `0x${word(5)}`,
  }
}

export function encodeStateCall(payer: string, nonce: string): string {
  return `${selectors.state}${encodeHexWord(payer)}${encodeHexWord(nonce)}`
}

export function encodeBalanceCall(holder: string): string {
  return `${selectors.balance}${encodeHexWord(holder)}`
}

/** Lists the topics by which the use or the cancellation of one authorization is found. */
export function listAuthorizationTopics(
  payment: ExactPayment,
): readonly (string | readonly string[])[] {
  return [[topics.used, topics.canceled], `0x${encodeHexWord(payment.from)}`, payment.nonce]
}

/**
 * Returns true if these logs of one transaction show that exactly this payment was made: the token says that the
 * authorization was used and, next, as EIP-3009 tokens do, that the value moved. A success without a Transfer is no
 * payment (some tokens do not revert on a used nonce), and a Transfer elsewhere in the transaction may belong to
 * another authorization, as the same nonce can be signed for another payee.
 */
export function hasPayment(
  logs: readonly Log[],
  network: PaymentNetwork,
  payment: Pick<ExactPayment, 'from' | 'to' | 'value' | 'nonce'>,
): boolean {
  const from = `0x${encodeHexWord(payment.from)}`
  const to = `0x${encodeHexWord(payment.to)}`
  const says = (log: Log | undefined, expected: readonly string[]) =>
    log?.address === network.asset.address && hasTopics(log, expected)
  const usedAt = logs.findIndex((log) => says(log, [topics.used, from, payment.nonce]))
  const moved = usedAt < 0 ? undefined : logs[usedAt + 1]
  return (
    says(moved, [topics.transfer, from, to]) &&
    moved?.data === `0x${encodeNumberWord(payment.value)}`
  )
}

/** A transfer of the network's asset; `logIndex` is its index among the logs of its transaction. */
export type Transfer = { readonly from: string; readonly value: bigint; readonly logIndex: number }

/** Lists the transfers to the address in these logs of one transaction; transfers of nothing are left out. */
export function listTransfersTo(
  logs: readonly Log[],
  network: PaymentNetwork,
  to: string,
): readonly Transfer[] {
  return logs.flatMap((log, logIndex) => {
    const [topic, from = '', receiver] = log.topics
    const isOurs = log.address === network.asset.address && log.topics.length === 3
    if (!isOurs || topic !== topics.transfer || receiver !== `0x${encodeHexWord(to)}`) return []
    if (!isHash(from) || !isHash(log.data) || BigInt(log.data) === 0n) return []
    return [{ from: `0x${from.slice(26)}`, value: BigInt(log.data), logIndex }]
  })
}

/** Returns true if these logs of one transaction show that an authorization of the payer was used. */
export function hasAuthorization(
  logs: readonly Log[],
  network: PaymentNetwork,
  payer: string,
): boolean {
  return logs.some(
    ({ address, topics: [topic, authorizer] }) =>
      address === network.asset.address &&
      topic === topics.used &&
      authorizer === `0x${encodeHexWord(payer)}`,
  )
}

/** Returns true if the log has these topics, and no other ones. */
export function hasTopics(log: Log, expected: readonly string[]): boolean {
  return (
    log.topics.length === expected.length &&
    expected.every((topic, index) => log.topics[index] === topic)
  )
}
