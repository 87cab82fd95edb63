import { type Hex, keccak256, pad, parseTransaction, toHex } from 'viem'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import { type Rpc, RpcError, toUnreachable } from '../../packages/server/src/x402/rpc.ts'
import type { Chance } from './chance.ts'
import type { FaultProfile, Life } from './life.ts'
import type { Scheduler } from './scheduler.ts'
import {
  decodeCall,
  decodeTransfer,
  type Mined,
  makeLogs,
  type Transaction,
  type Transfer,
  toAuthorizationKey,
} from './token-forms.ts'
import { Treasury } from './treasury.ts'

export type Moved = {
  readonly value: bigint
  readonly by: 'us' | 'a third party'
  readonly hash: string
  /** The number of blocks that hold or follow it. */
  readonly depth: number
}

const blockMs = 2_000
const enough = 10n ** 24n

/**
 * A payment network as its node shows it: blocks, transactions that wait, revert, get lost, or are overtaken by a
 * third party with the same authorization, and last blocks that may be replaced: fewer of them than the confirmations
 * that the service waits for, so nothing deeper is ever undone.
 */
export class PaymentChain {
  readonly network: PaymentNetwork
  /** The blocks that the service waits for, that of the transaction included. */
  readonly confirmations: number
  readonly #scheduler: Scheduler
  readonly #chance: Chance
  readonly #faultProfile: FaultProfile
  /** The token of this run does not revert where an authorization was used already. */
  readonly #isLenient: boolean
  readonly #blocks: (readonly Mined[])[] = [[], []]
  /** Seconds since 1970 of each block. */
  readonly #times: number[]
  readonly #treasury: Treasury
  readonly #used = new Map<string, { readonly mined: Mined; readonly block: number }>()
  readonly #broke = new Map<string, boolean>()
  #pool: Transaction[] = []
  #thirds = 0

  constructor(
    network: PaymentNetwork,
    parts: { scheduler: Scheduler; chance: Chance; faultProfile: FaultProfile },
  ) {
    this.network = network
    this.#scheduler = parts.scheduler
    this.#chance = parts.chance
    this.#faultProfile = parts.faultProfile
    this.confirmations = parts.chance.pick('confirmations', [2, 2, 3, 4])
    this.#times = this.#blocks.map(() => this.#seconds)
    this.#treasury = new Treasury(network.payTo, parts)
    this.#isLenient = parts.chance.happens('a token that is lenient', 500)
    const mine = () => {
      this.#mine()
      this.#scheduler.after(blockMs, mine)
    }
    this.#scheduler.after(blockMs, mine)
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
    this.#pool.push(this.#findThird({ transfer }))
  }

  /** Finds where the money of an authorization is, if it moved. */
  moved(from: string, nonce: string): Moved | undefined {
    const use = this.#used.get(toAuthorizationKey({ from, nonce }))
    if (use?.mined.effect !== 'moved') return undefined
    const { transaction } = use.mined
    return {
      value: transaction.transfer.value,
      by: transaction.nonce === undefined ? 'a third party' : 'us',
      hash: transaction.hash,
      depth: this.#blocks.length - use.block,
    }
  }

  /** Lists the authorizations of payers whose money moved to the service. */
  allMoved(): string[] {
    const { payTo } = this.network
    return this.#listMoved().flatMap((one) => (one.to === payTo ? [toAuthorizationKey(one)] : []))
  }

  /** Lists the authorizations of payers whose money moved to somebody else. */
  allMovedElsewhere(): string[] {
    const { payTo } = this.network
    return this.#listMoved().flatMap((one) =>
      one.to === payTo || one.from === payTo ? [] : [toAuthorizationKey(one)],
    )
  }

  /** Lists the transfers out of the service's own address. */
  allPaidOut(): Transfer[] {
    return this.#listMoved().filter(({ from }) => from === this.network.payTo)
  }

  #listMoved(): Transfer[] {
    return [...this.#used.values()].flatMap(({ mined: { effect, transaction } }) =>
      effect === 'moved' ? [transaction.transfer] : [],
    )
  }

  #describeBlock(number: string): object | null {
    const seconds = number === 'latest' ? this.#times.at(-1) : this.#times[Number(number)]
    if (seconds === undefined) return null
    return { hash: pad('0x1'), baseFeePerGas: toHex(1_000_000_000), timestamp: toHex(seconds) }
  }

  /** Says that a transaction of ours is waiting that may still move the payment. */
  isPooled(from: string, nonce: string): boolean {
    return this.#pool.some(
      ({ transfer, nonce: own }) =>
        own !== undefined &&
        toAuthorizationKey(transfer) === toAuthorizationKey({ from, nonce }) &&
        transfer.validBefore > BigInt(this.#seconds),
    )
  }

  get #seconds(): number {
    return Math.floor(this.#scheduler.now / 1000)
  }

  #answer(method: string, params: readonly unknown[]): unknown {
    const [first] = params
    switch (method) {
      case 'eth_sendRawTransaction':
        return this.#take(String(first) as Hex)
      case 'eth_call':
        return this.#call((first as { data: Hex }).data)
      case 'eth_getTransactionReceipt':
        return this.#receipt(String(first))
      case 'eth_getLogs':
        return this.#logs((first as { topics: readonly unknown[] }).topics)
      case 'eth_blockNumber':
        return toHex(this.#blocks.length - 1)
      case 'eth_getTransactionCount':
        return toHex(this.#minedCount())
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
    const { nonce, data } = parseTransaction(raw)
    if ((nonce ?? 0) < this.#minedCount())
      throw new RpcError({ code: -32000, message: 'nonce too low' })
    if (this.#pool.some((one) => one.hash === hash))
      throw new RpcError({ code: -32000, message: 'already known' })
    this.#pool.push({ hash, nonce: nonce ?? 0, transfer: decodeTransfer(data ?? '0x') })
    return hash
  }

  #call(data: Hex): string {
    const { functionName, args } = decodeCall(data)
    if (functionName === 'balanceOf') {
      const isOurs = args[0].toLowerCase() === this.network.payTo
      return pad(toHex(isOurs ? this.#treasury.computeFunds(this.#listMoved()) : enough))
    }
    if (functionName === 'authorizationState') {
      const [from, nonce] = args
      return pad(toHex(this.#used.has(toAuthorizationKey({ from, nonce })) ? 1 : 0))
    }
    if (this.#wouldRevert(decodeTransfer(data), false))
      throw new RpcError({ code: 3, message: 'execution reverted' })
    return '0x'
  }

  #wouldRevert(transfer: Transfer, isMined: boolean): boolean {
    if (transfer.validBefore <= BigInt(this.#seconds)) return true
    if (this.#used.has(toAuthorizationKey(transfer))) return !this.#isLenient
    if (this.#treasury.refuses(transfer, this.#listMoved())) return true
    return isMined && this.#broke.get(toAuthorizationKey(transfer)) === true
  }

  #minedCount(): number {
    return this.#blocks.flat().filter(({ transaction }) => transaction.nonce !== undefined).length
  }

  #mine(): void {
    const deepest = this.confirmations - 1
    const isReplaced =
      this.#blocks.length > deepest + 2 && this.#chance.happens('reorg', this.#faultProfile.outside)
    const count = isReplaced ? this.#chance.between('reorg depth', 1, deepest) : 0
    this.#forgetLast(count)
    // A chain replaces another one by being longer.
    for (let n = 0; n <= count; n++) this.#block()
  }

  #forgetLast(count: number): void {
    if (count === 0) return
    const gone = this.#blocks.splice(-count).flat()
    this.#times.splice(-count)
    for (const { transaction, effect } of gone)
      if (effect === 'moved' || effect === 'canceled')
        this.#used.delete(toAuthorizationKey(transaction.transfer))
    this.#pool = [...gone.map(({ transaction }) => transaction), ...this.#pool]
    this.#scheduler.note(`chain replaces its last ${count} blocks, of ${gone.length}`)
  }

  #block(): void {
    const chance = this.#chance
    const outside = this.#faultProfile.outside
    const block: Mined[] = []
    this.#blocks.push(block)
    this.#times.push(this.#seconds)
    const waiting = this.#pool.sort((a, b) => (a.nonce ?? -1) - (b.nonce ?? -1))
    this.#pool = []
    let next = this.#minedCount()
    for (const transaction of waiting) {
      const key = toAuthorizationKey(transaction.transfer)
      if (transaction.nonce === undefined) {
        block.push(this.#execute(transaction))
        continue
      }
      if (transaction.nonce < next) continue
      if (chance.happens('node drops', outside)) continue
      if (transaction.nonce > next || chance.happens('node delays', outside * 4)) {
        this.#pool.push(transaction)
        continue
      }
      next += 1
      const isOurs = transaction.transfer.from === this.network.payTo
      // A transfer of ours that is reverted once goes through when it is tried again.
      if (isOurs) this.#broke.set(key, chance.happens('token is out of order', outside))
      else if (!this.#broke.has(key))
        this.#broke.set(key, chance.happens('payer is broke', outside))
      if (!isOurs && chance.happens('payer cancels', outside))
        block.push(this.#execute({ ...this.#findThird(transaction), isCancel: true }))
      if (chance.happens('third party is first', outside * 2))
        block.push(this.#execute(this.#findThird(transaction)))
      block.push(this.#execute(transaction))
      if (this.#broke.get(key) === true) this.#maybeLater(transaction)
    }
    if (block.length === 0) return
    const texts = block.map((one) => `${one.transaction.hash.slice(0, 10)} ${one.effect}`)
    this.#scheduler.note(`chain block ${this.#blocks.length - 1}: ${texts.join(', ')}`)
  }

  /** Every party that saw the authorization can hand it in, also long after, once the payer has money again. */
  #maybeLater(transaction: Transaction): void {
    const key = toAuthorizationKey(transaction.transfer)
    if (!this.#chance.happens('a third party tries later', 500)) return
    this.#scheduler.after(this.#chance.between('later', 3_000, 90_000), () => {
      this.#broke.set(key, false)
      this.#pool.push(this.#findThird(transaction))
    })
  }

  #findThird({ transfer }: Pick<Transaction, 'transfer'>): Transaction {
    this.#thirds += 1
    const hash = keccak256(toHex(`${this.#thirds} ${toAuthorizationKey(transfer)}`))
    return { hash, nonce: undefined, transfer }
  }

  #execute(transaction: Transaction): Mined {
    const key = toAuthorizationKey(transaction.transfer)
    const mined = { transaction, effect: this.#computeEffect(transaction) }
    if (mined.effect === 'moved' || mined.effect === 'canceled')
      this.#used.set(key, { mined, block: this.#blocks.length - 1 })
    return mined
  }

  #computeEffect({ transfer, isCancel }: Transaction): Mined['effect'] {
    const isUsed = this.#used.has(toAuthorizationKey(transfer))
    if (isCancel === true) return isUsed ? 'reverted' : 'canceled'
    if (this.#wouldRevert(transfer, true)) return 'reverted'
    return isUsed ? 'nothing' : 'moved'
  }

  #receipt(hash: string): object | null {
    for (const [number, block] of this.#blocks.entries()) {
      const mined = block.find(({ transaction }) => transaction.hash === hash)
      if (mined === undefined) continue
      return {
        transactionHash: hash,
        status: mined.effect === 'reverted' ? '0x0' : '0x1',
        blockNumber: toHex(number),
        to: this.network.asset.address,
        logs: makeLogs(mined, this.network.asset.address),
      }
    }
    return null
  }

  #logs(topics: readonly unknown[]): object[] {
    const [, payer, nonce] = topics
    return [...this.#used.values()]
      .map(({ mined }) => mined)
      .filter(({ transaction: { transfer } }) => {
        return pad(transfer.from as Hex) === payer && transfer.nonce === nonce
      })
      .flatMap((mined) => makeLogs(mined, this.network.asset.address).slice(0, 1))
  }
}
