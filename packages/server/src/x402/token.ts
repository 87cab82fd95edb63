import { bytesOf, eventTopic, hexWord, isHash, numberWord, selector } from './hex.ts'
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
 * Gas limit of one transferWithAuthorization: 66,000 are used where the payee already has a
 * balance, 86,000 where not; USDC behind its proxy takes some thousands more.
 */
export const transferGas = 150_000n

const selectors = {
  transfer: selector(
    'transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)',
  ),
  state: selector('authorizationState(address,bytes32)'),
  balance: selector('balanceOf(address)'),
}

export const topics = {
  transfer: eventTopic('Transfer(address,address,uint256)'),
  used: eventTopic('AuthorizationUsed(address,bytes32)'),
  canceled: eventTopic('AuthorizationCanceled(address,bytes32)'),
}

/** The form with v, r and s apart, which every version of USDC has. */
export function transferCall(payment: ExactPayment): string {
  const signature = bytesOf(payment.signature)
  return [
    selectors.transfer,
    hexWord(payment.from),
    hexWord(payment.to),
    numberWord(payment.value),
    numberWord(payment.validAfter),
    numberWord(payment.validBefore),
    hexWord(payment.nonce),
    numberWord(signature[64] ?? 0),
    signature.toString('hex', 0, 64),
  ].join('')
}

export function authorizationStateCall(payer: string, nonce: string): string {
  return `${selectors.state}${hexWord(payer)}${hexWord(nonce)}`
}

export function balanceCall(holder: string): string {
  return `${selectors.balance}${hexWord(holder)}`
}

/** Topics by which the use or the cancellation of one authorization is found. */
export function authorizationTopics(
  payment: ExactPayment,
): readonly (string | readonly string[])[] {
  return [[topics.used, topics.canceled], `0x${hexWord(payment.from)}`, payment.nonce]
}

/**
 * Whether these logs of one transaction show that exactly this payment was made: the token says that the authorization
 * was used and, next, as EIP-3009 tokens do, that the value moved. A success without a Transfer is none (some tokens do
 * not revert on a used nonce), and one elsewhere in the transaction may be another authorization's, as the same nonce
 * can be signed for another payee.
 */
export function showsPayment(
  logs: readonly Log[],
  network: PaymentNetwork,
  payment: ExactPayment,
): boolean {
  const from = `0x${hexWord(payment.from)}`
  const to = `0x${hexWord(payment.to)}`
  const says = (log: Log | undefined, expected: readonly string[]) =>
    log?.address === network.asset.address && matches(log, expected)
  const usedAt = logs.findIndex((log) => says(log, [topics.used, from, payment.nonce]))
  const moved = usedAt < 0 ? undefined : logs[usedAt + 1]
  return (
    says(moved, [topics.transfer, from, to]) && moved?.data === `0x${numberWord(payment.value)}`
  )
}

/** A transfer of the network's asset; `logIndex` is its place among the logs of its transaction. */
export type Transfer = { readonly from: string; readonly value: bigint; readonly logIndex: number }

/** What these logs of one transaction say that the address received; transfers of nothing are left out. */
export function transfersTo(
  logs: readonly Log[],
  network: PaymentNetwork,
  to: string,
): readonly Transfer[] {
  return logs.flatMap((log, logIndex) => {
    const [topic, from = '', receiver] = log.topics
    const isOurs = log.address === network.asset.address && log.topics.length === 3
    if (!isOurs || topic !== topics.transfer || receiver !== `0x${hexWord(to)}`) return []
    if (!isHash(from) || !isHash(log.data) || BigInt(log.data) === 0n) return []
    return [{ from: `0x${from.slice(26)}`, value: BigInt(log.data), logIndex }]
  })
}

/** Whether these logs of one transaction show an authorization of the payer used. */
export function showsAuthorizationOf(
  logs: readonly Log[],
  network: PaymentNetwork,
  payer: string,
): boolean {
  return logs.some(
    ({ address, topics: [topic, authorizer] }) =>
      address === network.asset.address &&
      topic === topics.used &&
      authorizer === `0x${hexWord(payer)}`,
  )
}

function matches(log: Log, expected: readonly string[]): boolean {
  return (
    log.topics.length === expected.length &&
    expected.every((topic, index) => log.topics[index] === topic)
  )
}
