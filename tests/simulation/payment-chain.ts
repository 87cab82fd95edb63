import { type Hex, keccak256, pad, parseTransaction, toHex } from 'viem'
import { multicall3 } from '../../packages/server/src/devnet/contracts.ts'
import { escrowAddress } from '../../packages/server/src/x402/channels/channel.ts'
import { multicallAddress } from '../../packages/server/src/x402/joint.ts'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import { type Rpc, RpcError, toUnreachable } from '../../packages/server/src/x402/rpc.ts'
import { permit2Address, uptoProxyAddress } from '../../packages/server/src/x402/upto/upto-terms.ts'
import type { Chance } from './chance.ts'
import { answerEscrow, decodeEscrowCalls } from './escrow-forms.ts'
import type { EscrowBooks, EscrowCall } from './escrow-model.ts'
import type { FaultProfile, Life } from './life.ts'
import { MinedBlocks } from './mined-blocks.ts'
import { answerAllowance, answerPermit2, decodeUptoCall } from './permit-forms.ts'
import type { PermitCall } from './permit-model.ts'
import type { Scheduler } from './scheduler.ts'
import {
  type Action,
  decodeCall,
  decodeJointCall,
  decodeTransfer,
  isFound,
  makeLogs,
  readAuthorization,
  type Transfer,
  toAuthorizationKey,
} from './token-forms.ts'

export type Moved = {
  readonly value: bigint
  readonly to: string
  readonly by: 'us' | 'a third party'
  readonly hash: string
  /** The number of blocks that hold or follow it. */
  readonly depth: number
  /** The time of its block, in seconds since 1970. */
  readonly seconds: number
}

const enough = 10n ** 24n

/**
 * A payment network as its node shows it: the token, the channel contract, and what becomes of transactions: they wait,
 * revert, get lost, or are overtaken by a third party with the same authorization.
 */
export class PaymentChain {
  readonly network: PaymentNetwork
  readonly #faultProfile: FaultProfile
  /** The address of the service's key, which sends its transactions. */
  readonly #sender: string
  readonly #blocks: MinedBlocks
  /** By authorization, the nonces of the service's transactions that had it; those that replace another one have its own. */
  readonly #sent = new Map<string, Set<number>>()

  constructor(
    network: PaymentNetwork,
    parts: {
      scheduler: Scheduler
      chance: Chance
      faultProfile: FaultProfile
      sender: string
      hasFinal?: boolean
    },
  ) {
    this.network = network
    this.#faultProfile = parts.faultProfile
    this.#sender = parts.sender
    this.#blocks = new MinedBlocks(network, parts)
  }

  /** The blocks that the service waits for, that of the transaction included. */
  get confirmations(): number {
    return this.#blocks.confirmations
  }

  /** The node as one process reaches it. */
  rpc(life: Life): Rpc {
    return {
      call: (method, params) =>
        life.step(method, async () => this.#answer(method, params), {
          latency: [1, 40],
          lost: () => toUnreachable(new Error('the node gave no answer')),
          perMille: this.#faultProfile.outside,
        }),
      close: () => undefined,
    }
  }

  /** Somebody who is not the service hands an authorization to the token. */
  handIn(transfer: Transfer): void {
    this.#blocks.addOther({ to: this.network.asset.address, transfer })
  }

  /** A payer moves its money to an address itself; returns the hash of its transaction. */
  transfer(order: Pick<Transfer, 'from' | 'to' | 'value'>): string {
    return this.#blocks.addPlain(order)
  }

  /** The money of a deposit address, in atomic units; undefined where nobody sent it anything. */
  readDeposited(address: string): bigint | undefined {
    return this.#blocks.readDeposited(address)
  }

  /** The money that the service's own address got by payments, in atomic units, without what its operator left. */
  get earned(): bigint {
    return this.#blocks.funds - this.#blocks.reserve
  }

  /** Lists the authorizations of sweeps that blocks have, as payments carry them: anybody can read them there. */
  listSweeps() {
    return [...this.#blocks.uses.values()].flatMap(({ mined: { effect, transaction } }) => {
      const { transfer, data } = transaction.action
      const isSeen = effect === 'moved' && transfer !== undefined && data !== undefined
      return isSeen && this.#blocks.addresses.isSweep(transfer)
        ? [readAuthorization(data as Hex)]
        : []
    })
  }

  /** A payer calls the channel contract itself. */
  callEscrow(sender: string, call: EscrowCall): void {
    this.#blocks.addOther({ to: escrowAddress, escrow: { sender, calls: [call], isByPayer: true } })
  }

  /** A payer calls Permit2 itself, or the token about it. */
  callPermit2(sender: string, call: PermitCall): void {
    const to = call.kind === 'approve' ? this.network.asset.address : permit2Address
    this.#blocks.addOther({ to, permit: { sender, call } })
  }

  /** The books of the channel contract, up to the last block that nobody replaces any more. */
  get escrow(): EscrowBooks {
    return this.#blocks.confirmed.escrow
  }

  /** Finds where the money of an authorization is, if it moved. */
  moved(from: string, nonce: string): Moved | undefined {
    const use = this.#blocks.uses.get(toAuthorizationKey({ from, nonce }))
    if (use?.mined.effect !== 'moved') return undefined
    const { transaction } = use.mined
    return {
      value: transaction.action.transfer?.value ?? 0n,
      to: transaction.action.transfer?.to ?? '',
      by: transaction.nonce === undefined ? 'a third party' : 'us',
      hash: transaction.hash,
      depth: this.#blocks.height + 1 - use.block,
      seconds: this.#blocks.at(use.block)?.seconds ?? 0,
    }
  }

  /** Lists the moves of an authorization's money: those that were confirmed and taken back, and the one that is there. */
  listMoves(from: string, nonce: string): readonly Pick<Moved, 'value' | 'to' | 'hash'>[] {
    const once = this.#blocks.past.list(toAuthorizationKey({ from, nonce }))
    const now = this.moved(from, nonce)
    return [
      ...once.map(({ transfer: { value, to }, hash }) => ({ value, to, hash })),
      ...(now ? [now] : []),
    ]
  }

  /**
   * Says that the money of an authorization is in a block as deep as the service waits for, or was before that was
   * replaced.
   */
  wasConfirmed(from: string, nonce: string): boolean {
    const depth = this.moved(from, nonce)?.depth ?? 0
    return (
      depth >= this.confirmations ||
      this.#blocks.past.list(toAuthorizationKey({ from, nonce })).length > 0
    )
  }

  /** Counts the transactions of the service's own that had an authorization, of which each could have used it. */
  countSent(from: string, nonce: string): number {
    return this.#sent.get(toAuthorizationKey({ from, nonce }))?.size ?? 0
  }

  /** Says that an authorization did not move in a block as deep as the service waits for, and that was replaced. */
  hasFailedOnce(from: string, nonce: string): boolean {
    return this.#blocks.past.hasFailed(toAuthorizationKey({ from, nonce }))
  }

  /** Replaces more blocks than the service waits for. */
  replaceDeep(): void {
    this.#blocks.replaceDeep()
  }

  /** The time until a block is final that is made now, in milliseconds. */
  get finalMs(): number {
    return this.#blocks.finalMs
  }

  /** Says that a block has used an authorization, or cancelled it: everybody may have seen it. */
  isUsed(from: string, nonce: string): boolean {
    return this.#blocks.uses.has(toAuthorizationKey({ from, nonce }))
  }

  /** Lists the authorizations of payers whose money moved to the service; sweeps bring no new money. */
  allMoved(): string[] {
    const { payTo } = this.network
    return this.#blocks
      .listMoved()
      .flatMap((one) =>
        one.to === payTo && !this.#blocks.addresses.isSweep(one) ? [toAuthorizationKey(one)] : [],
      )
  }

  /** Lists the authorizations and own transfers of payers whose money moved to another address than the service's. */
  allMovedElsewhere(): string[] {
    const { payTo } = this.network
    return this.#blocks
      .listMoved()
      .flatMap((one) => (one.to === payTo || one.from === payTo ? [] : [toAuthorizationKey(one)]))
  }

  /** Lists what a payer's authorizations and own transfers ever moved to the service, in atomic units. */
  allPaid(payer: string): readonly bigint[] {
    return this.#blocks
      .listMoved()
      .flatMap(({ from, nonce }) => (from === payer ? this.listMoves(from, nonce) : []))
      .map(({ value }) => value)
  }

  /** Lists the transfers out of the service's own address. */
  allPaidOut(): Transfer[] {
    return this.#blocks.listMoved().filter(({ from }) => from === this.network.payTo)
  }

  #describeBlock(number: string): object | null {
    const { height: last, finalHeight = Number.NaN } = this.#blocks
    const named = new Map([
      ['latest', last],
      ['finalized', finalHeight],
    ])
    const height = named.get(number) ?? Number(number)
    const block = this.#blocks.at(height)
    if (block === undefined) return null
    const timestamp = toHex(block.seconds)
    const hash = this.#hashBlock(height)
    return { number: toHex(height), hash, baseFeePerGas: toHex(1_000_000_000), timestamp }
  }

  #hashBlock(height: number): Hex {
    return pad(toHex(this.#blocks.at(height)?.serial ?? 0))
  }

  /** Says that a transaction of ours is waiting that may still move the payment. */
  isPooled(from: string, nonce: string): boolean {
    if (this.isUsed(from, nonce)) return false
    return this.#blocks.pool.some(
      ({ action, parts = [action], nonce: own }) =>
        own !== undefined &&
        parts.some(
          ({ transfer }) =>
            transfer !== undefined &&
            toAuthorizationKey(transfer) === toAuthorizationKey({ from, nonce }) &&
            transfer.validBefore > BigInt(this.#blocks.seconds),
        ),
    )
  }

  #answer(method: string, params: readonly unknown[]): unknown {
    const [first, second] = params
    switch (method) {
      case 'eth_sendRawTransaction':
        return this.#take(String(first) as Hex)
      case 'eth_call':
        return this.#call(first as { to: string; from?: string; data: Hex }, String(second))
      case 'eth_getTransactionReceipt':
        return this.#receipt(String(first))
      case 'eth_getLogs':
        return this.#logs((first as { topics: readonly unknown[] }).topics)
      case 'eth_getTransactionByHash':
        return this.#transaction(String(first))
      case 'eth_blockNumber':
        return toHex(this.#blocks.height)
      case 'eth_getTransactionCount':
        return toHex(this.#blocks.countOurs())
      // Wallets here have no code.
      case 'eth_getCode':
        return first === multicallAddress ? multicall3.code : '0x'
      case 'eth_getBalance':
        return toHex(10n ** 20n)
      case 'eth_getBlockByNumber':
        return this.#describeBlock(String(first))
      case 'eth_maxPriorityFeePerGas':
        return toHex(1_000_000)
      default:
        throw new Error(`the simulated node does not know ${method}`)
    }
  }

  #take(raw: Hex): string {
    const hash = keccak256(raw)
    const { nonce, to, data = '0x' } = parseTransaction(raw)
    if ((nonce ?? 0) < this.#blocks.countOurs())
      throw new RpcError({ code: -32000, message: 'nonce too low' })
    if (this.#blocks.pool.some((one) => one.hash === hash))
      throw new RpcError({ code: -32000, message: 'already known' })
    const sent = { hash, nonce: nonce ?? 0 }
    if (to === multicallAddress) {
      const calls = decodeJointCall(data)
      const parts = calls.map((call) => this.#decode(call.to, call.data, multicallAddress))
      for (const one of parts) this.#noteSent(one, sent.nonce)
      this.#blocks.add({ ...sent, action: { to, data }, parts })
    } else {
      const action = this.#decode(String(to), data, this.#sender)
      this.#noteSent(action, sent.nonce)
      this.#blocks.add({ ...sent, action })
    }
    return hash
  }

  #noteSent({ transfer }: Action, nonce: number): void {
    if (transfer === undefined) return
    const key = toAuthorizationKey(transfer)
    this.#sent.set(key, (this.#sent.get(key) ?? new Set()).add(nonce))
  }

  #decode(address: string, data: Hex, sender: string): Action {
    const to = address.toLowerCase()
    if (to === uptoProxyAddress) {
      const { call, transfer } = decodeUptoCall(data)
      return { to, transfer, permit: { sender, call }, data }
    }
    if (to !== escrowAddress) return { to, transfer: decodeTransfer(data), data }
    const { calls, transfer } = decodeEscrowCalls(this.network.chainId, data)
    return { to, escrow: { sender, calls }, ...(transfer && { transfer }) }
  }

  #call({ to, from = '', data }: { to: string; from?: string; data: Hex }, block: string): string {
    if (Number(block) > this.#blocks.height)
      throw new RpcError({ code: -32000, message: 'header not found' })
    if (to === escrowAddress) {
      const { escrow } = this.#blocks.at(Number(block)) ?? this.#blocks.last
      const answer = answerEscrow(escrow, data)
      if (answer !== undefined) return answer
      return this.#tryAction(this.#decode(to, data, from))
    }
    const { permits } = this.#blocks.last
    if (to === permit2Address) return answerPermit2(permits, data)
    if (to === uptoProxyAddress) return this.#tryAction(this.#decode(to, data, from))
    const allowance = answerAllowance(permits, data)
    if (allowance !== undefined) return allowance
    const { functionName, args } = decodeCall(data)
    if (functionName === 'balanceOf') {
      const holder = args[0].toLowerCase()
      const isOurs = holder === this.network.payTo
      const held = isOurs ? this.#blocks.funds : this.#blocks.readDeposited(holder)
      return pad(toHex(held ?? enough))
    }
    if (functionName === 'authorizationState') {
      const [from, nonce] = args
      return pad(toHex(this.#blocks.uses.has(toAuthorizationKey({ from, nonce })) ? 1 : 0))
    }
    return this.#tryAction(this.#decode(to, data, from))
  }

  #tryAction(action: Action): string {
    if (this.#blocks.wouldRevert(action))
      throw new RpcError({ code: 3, message: 'execution reverted' })
    return '0x'
  }

  #transaction(hash: string): object | null {
    const found = this.#blocks.find(hash)
    const known = found?.mined.transaction ?? this.#blocks.pool.find((one) => one.hash === hash)
    if (known === undefined) return null
    const { to, data: input = '0x' } = known.action
    return { to, input, ...this.#namePlace(found?.height) }
  }

  #namePlace(height: number | undefined): object {
    if (height === undefined) return { blockNumber: null, blockHash: null }
    return { blockNumber: toHex(height), blockHash: this.#hashBlock(height) }
  }

  #receipt(hash: string): object | null {
    const found = this.#blocks.find(hash)
    if (found === undefined) return null
    const { mined, height } = found
    return {
      transactionHash: hash,
      status: mined.effect === 'reverted' ? '0x0' : '0x1',
      ...this.#namePlace(height),
      to: mined.transaction.action.to,
      logs: makeLogs(mined, this.network.asset.address),
    }
  }

  #logs(topics: readonly unknown[]): object[] {
    const { address } = this.network.asset
    return [...this.#blocks.uses.values()].flatMap(({ mined }) =>
      makeLogs(mined, address).filter((one) => isFound(one.topics, topics)),
    )
  }
}
