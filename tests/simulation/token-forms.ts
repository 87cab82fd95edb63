import { concat, decodeFunctionData, type Hex, pad, parseAbi, toEventSelector, toHex } from 'viem'
import type { EscrowCall } from './escrow-model.ts'
import type { PermitCall } from './permit-model.ts'

/** A transfer that a party handed to the token. */
export type Transfer = {
  readonly from: string
  readonly to: string
  readonly value: bigint
  readonly validBefore: bigint
  readonly nonce: string
}

/** The effect of a transaction where nothing stands against it. */
export type Action = {
  /** The contract that it calls. */
  readonly to: string
  /** The authorization that it uses; not there where it uses none. */
  readonly transfer?: Transfer
  /** Calls of the channel contract, of which all are made or none, and who makes them. */
  readonly escrow?: {
    readonly sender: string
    readonly calls: readonly EscrowCall[]
    /** The payer makes them itself. */
    readonly isByPayer?: true
  }
  /** A call about permits, and who makes it. */
  readonly permit?: { readonly sender: string; readonly call: PermitCall }
  /** The holder moves its money itself, without an authorization. */
  readonly isPlain?: true
  /** The call, as it was sent. */
  readonly data?: string
}

export type Transaction = {
  readonly hash: string
  /** The service's own transactions have nonces; those of others are of no interest here. */
  readonly nonce: number | undefined
  readonly action: Action
  /** The payer takes the authorization back instead. */
  readonly isCancel?: boolean
  /** The calls of a joint transaction, of which each may fail alone. */
  readonly parts?: readonly Action[]
}

export type Mined = {
  readonly transaction: Transaction
  readonly effect: 'moved' | 'called' | 'canceled' | 'nothing' | 'reverted'
  /** The effects of the parts of a joint transaction; none where it was reverted as a whole. */
  readonly parts?: readonly Mined[]
}

const abi = parseAbi([
  'function transferWithAuthorization(address from, address to, uint256 value, uint256 validAfter, uint256 validBefore, bytes32 nonce, uint8 v, bytes32 r, bytes32 s)',
  'function authorizationState(address authorizer, bytes32 nonce) view returns (bool)',
  'function balanceOf(address account) view returns (uint256)',
])
const multicallAbi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'function aggregate3(Call3[] calls)',
])
const usedTopic = toEventSelector('AuthorizationUsed(address,bytes32)')
const canceledTopic = toEventSelector('AuthorizationCanceled(address,bytes32)')
const transferTopic = toEventSelector('Transfer(address,address,uint256)')

export function toAuthorizationKey({ from, nonce }: { from: string; nonce: string }): string {
  return `${from.toLowerCase()}/${nonce}`
}

/** Decodes a call of the token. */
export function decodeCall(data: Hex) {
  return decodeFunctionData({ abi, data })
}

export function decodeTransfer(data: Hex): Transfer {
  const { functionName, args } = decodeCall(data)
  if (functionName !== 'transferWithAuthorization') throw new Error(`${functionName} moves nothing`)
  const [from, to, value, , validBefore, nonce] = args
  return { from: from.toLowerCase(), to: to.toLowerCase(), value, validBefore, nonce }
}

/** Reads the authorization of a call as a payment carries it: whoever sees the call on the chain has its signature. */
export function readAuthorization(data: Hex) {
  const { functionName, args } = decodeCall(data)
  if (functionName !== 'transferWithAuthorization') throw new Error(`${functionName} moves nothing`)
  const [from, to, value, validAfter, validBefore, nonce, v, r, s] = args
  const shared = { from: from.toLowerCase(), to: to.toLowerCase(), nonce }
  const texts = { value: `${value}`, validAfter: `${validAfter}`, validBefore: `${validBefore}` }
  return { signature: concat([r, s, toHex(v)]), authorization: { ...shared, ...texts } }
}

/** Decodes the calls of a joint transaction, in their order. */
export function decodeJointCall(data: Hex): readonly { readonly to: string; readonly data: Hex }[] {
  const { args } = decodeFunctionData({ abi: multicallAbi, data })
  return args[0].map(({ target, callData }) => ({ to: target.toLowerCase(), data: callData }))
}

/** Lists what a transaction did: its parts where it is a joint one. */
export function listEffects(mined: Mined): readonly Mined[] {
  return mined.transaction.parts === undefined ? [mined] : (mined.parts ?? [])
}

/** Makes the logs of a transaction, as the token writes them. */
export function makeLogs(mined: Mined, address: string): readonly TokenLog[] {
  return listEffects(mined).flatMap((one) => makeTokenLogs(one, address))
}

type TokenLog = { readonly topics: readonly string[]; readonly data: string }

function makeTokenLogs({ transaction, effect }: Mined, address: string): readonly TokenLog[] {
  const { transfer, permit, isPlain } = transaction.action
  if (transfer === undefined) return []
  const { from, to, value, nonce } = transfer
  const shared = { address, transactionHash: transaction.hash }
  const payer = pad(from as Hex)
  if (effect === 'canceled')
    return [{ ...shared, topics: [canceledTopic, payer, nonce], data: '0x' }]
  if (effect !== 'moved') return []
  const topics = [transferTopic, payer, pad(to as Hex)]
  const move = { ...shared, topics, data: pad(toHex(value)) }
  // Permit2 moves money without an authorization of the token, and so does its holder.
  if (permit !== undefined || isPlain === true) return [move]
  return [{ ...shared, topics: [usedTopic, payer, nonce], data: '0x' }, move]
}

/** Says that a log has these topics, of each the one or one of those that are looked for. */
export function isFound(found: readonly unknown[], topics: readonly unknown[]): boolean {
  return topics.every((topic, at) =>
    Array.isArray(topic) ? topic.includes(found[at]) : topic === null || topic === found[at],
  )
}
