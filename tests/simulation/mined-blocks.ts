import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import type { Chance } from './chance.ts'
import { type ContractBooks, computeBooks } from './contract-books.ts'
import { DepositAddresses } from './deposit-addresses.ts'
import { emptyBooks, readReceiver } from './escrow-model.ts'
import type { FaultProfile } from './life.ts'
import { listFates, makeCancel, makeOther } from './other-parties.ts'
import { PastMoves } from './past-moves.ts'
import { emptyPermitBooks } from './permit-model.ts'
import type { Scheduler } from './scheduler.ts'
import {
  type Action,
  listEffects,
  type Mined,
  type Transaction,
  type Transfer,
  toAuthorizationKey,
} from './token-forms.ts'
import { Treasury } from './treasury.ts'

type Block = {
  /** The number of blocks that were ever made before it, so no two have the same. */
  readonly serial: number
  /** Since 1970. */
  readonly seconds: number
  readonly mined: Mined[]
  /** The books of the contracts after it. */
  escrow: ContractBooks['escrow']
  permits: ContractBooks['permits']
}

const blockMs = 2_000
/** The blocks above the last one that the chain calls final, at least and at most. */
const finalDepths = [8, 32] as const

/**
 * The blocks of a simulated chain, what waits for one, and what the token and the channel contract make of it. Blocks
 * come every two seconds; the last ones may be replaced, fewer of them than the confirmations that the service waits for,
 * unless somebody asks for more.
 */
export class MinedBlocks {
  /** The blocks that the service waits for, that of the transaction included. */
  readonly confirmations: number
  readonly addresses = new DepositAddresses()
  readonly past = new PastMoves()
  readonly #network: PaymentNetwork
  readonly #scheduler: Scheduler
  readonly #chance: Chance
  readonly #faultProfile: FaultProfile
  /** The token of this run does not revert where an authorization was used already. */
  readonly #isLenient: boolean
  readonly #blocks: Block[]
  readonly #treasury: Treasury
  readonly #used = new Map<string, { readonly mined: Mined; readonly block: number }>()
  readonly #broke = new Map<string, boolean>()
  /** The blocks above the last one that the chain calls final; undefined where it does not say. */
  readonly #finalDepth: number | undefined
  #made = 0
  #pool: Transaction[] = []
  #thirds = 0

  constructor(
    network: PaymentNetwork,
    parts: {
      scheduler: Scheduler
      chance: Chance
      faultProfile: FaultProfile
      /** It says which blocks are final. */
      hasFinal?: boolean
    },
  ) {
    this.#network = network
    this.#scheduler = parts.scheduler
    this.#chance = parts.chance
    this.#faultProfile = parts.faultProfile
    this.confirmations = parts.chance.pick('confirmations', [2, 2, 3, 4])
    this.#finalDepth =
      parts.hasFinal === true ? parts.chance.between('final depth', ...finalDepths) : undefined
    const first = { seconds: this.seconds, escrow: emptyBooks, permits: emptyPermitBooks }
    this.#blocks = [1, 2].map((serial) => ({ ...first, serial, mined: [] }))
    this.#made = this.#blocks.length
    this.#treasury = new Treasury(network.payTo, parts)
    this.#isLenient = parts.chance.happens('a token that is lenient', 500)
    const mine = () => {
      this.#mine()
      this.#scheduler.after(blockMs, mine)
    }
    this.#scheduler.after(blockMs, mine)
  }

  /** The time, in seconds since 1970. */
  get seconds(): number {
    return Math.floor(this.#scheduler.now / 1000)
  }

  get last(): Block {
    const last = this.#blocks.at(-1)
    if (last === undefined) throw new Error('a chain has blocks')
    return last
  }

  /** The last block that nobody replaces any more. */
  get confirmed(): Block {
    return this.#blocks.at(-this.confirmations) ?? this.last
  }

  get height(): number {
    return this.#blocks.length - 1
  }

  /** The height of the last block that the chain calls final; undefined where it calls none so. */
  get finalHeight(): number | undefined {
    return this.#finalDepth && Math.max(0, this.height - this.#finalDepth)
  }

  /** The time until a block is final that is made now, in milliseconds; 0 where the chain calls none so. */
  get finalMs(): number {
    return (this.#finalDepth ?? 0) * blockMs
  }

  at(height: number): Block | undefined {
    return this.#blocks[height]
  }

  /** The transactions that wait for a block. */
  get pool(): readonly Transaction[] {
    return this.#pool
  }

  /** The uses of authorizations, cancellations among them, each with its block. */
  get uses(): ReadonlyMap<string, { readonly mined: Mined; readonly block: number }> {
    return this.#used
  }

  /** Takes a transaction of the service. */
  add(transaction: Transaction): void {
    this.#pool.push(transaction)
  }

  /** Takes a transaction of somebody else. */
  addOther(action: Action): void {
    this.#pool.push(makeOther(action, this.#countOther()))
  }

  /** A holder moves its money itself; returns the hash of its transaction. */
  addPlain(order: Pick<Transfer, 'from' | 'to' | 'value'>): string {
    const transaction = this.addresses.makeTransfer(this.#network.asset.address, order)
    this.#pool.push(transaction)
    return transaction.hash
  }

  /** The money of a deposit address; undefined where the address is none. */
  readDeposited(address: string): bigint | undefined {
    return this.addresses.readBalance(address, this.listMoved())
  }

  find(hash: string): { readonly mined: Mined; readonly height: number } | undefined {
    for (const [height, block] of this.#blocks.entries()) {
      const mined = block.mined.find(({ transaction }) => transaction.hash === hash)
      if (mined !== undefined) return { mined, height }
    }
    return undefined
  }

  /** Counts the service's own transactions in blocks. */
  countOurs(): number {
    let count = 0
    for (const { mined } of this.#blocks)
      for (const { transaction } of mined) if (transaction.nonce !== undefined) count += 1
    return count
  }

  /** Lists the transfers that were made. */
  listMoved(): Transfer[] {
    return [...this.#used.values()].flatMap(({ mined: { effect, transaction } }) =>
      effect === 'moved' ? (transaction.action.transfer ?? []) : [],
    )
  }

  /** The money of the service's address. */
  get funds(): bigint {
    const { payTo, asset } = this.#network
    const { settled } = readReceiver(this.last.escrow, payTo, asset.address)
    return this.#treasury.computeFunds(this.listMoved(), settled)
  }

  /** The part of it that its operator left there. */
  get reserve(): bigint {
    return this.#treasury.reserve
  }

  /** Says what a node does that tries it without a block: it knows nothing of what only a block shows. */
  wouldRevert(action: Action): boolean {
    return this.#isBarred(action) || this.#computeBooks(action) === undefined
  }

  /** Says that the token does not take it. */
  #isBarred({ transfer, escrow, permit }: Action): boolean {
    // Permit2 itself sees to times and nonces.
    if (transfer === undefined || permit !== undefined) return false
    if (transfer.validBefore <= BigInt(this.seconds)) return true
    // The channel contract reverts a deposit that brings nothing.
    if (this.#used.has(toAuthorizationKey(transfer)))
      return !this.#isLenient || escrow !== undefined
    if (
      this.addresses.isSweep(transfer) &&
      (this.readDeposited(transfer.from) ?? 0n) < transfer.value
    )
      return true
    return this.#treasury.refuses(transfer, () => this.funds)
  }

  #computeBooks(action: Action): ContractBooks | undefined {
    const { chainId } = this.#network
    return computeBooks(this.last, action, { chainId, seconds: BigInt(this.seconds) })
  }

  #mine(): void {
    const deepest = this.confirmations - 1
    const isReplaced =
      this.#blocks.length > deepest + 2 && this.#chance.happens('reorg', this.#faultProfile.outside)
    const count = isReplaced ? this.#chance.between('reorg depth', 1, deepest) : 0
    this.#pool = [...this.#forgetLast(count), ...this.#pool]
    this.#makeLonger(count)
  }

  /**
   * Replaces more blocks than the service waits for, and none that the chain calls final. A payer may think better of it,
   * and not all that they had comes again.
   */
  replaceDeep(): void {
    const most = this.height - (this.finalHeight ?? this.height)
    if (most < this.confirmations) return
    const count = this.#chance.between('deep reorg', this.confirmations, most)
    for (const transaction of this.#forgetLast(count)) this.#reconsider(transaction)
    this.#makeLonger(count)
  }

  /** Lets what was in a block come again, or not; a transaction of the service is sent again by itself. */
  #reconsider(transaction: Transaction): void {
    const chance = this.#chance
    const { nonce, parts, action } = transaction
    if (nonce === undefined) {
      const fate = chance.pick('fate of another', ['again', 'again', 'later', 'never'] as const)
      if (fate === 'never') return
      const ms = fate === 'later' ? chance.between('comes later', 1_000, 60_000) : 0
      this.#scheduler.after(ms, () => void this.#pool.push(transaction))
      return
    }
    if (!chance.happens('the pool forgets', 500)) this.#pool.push(transaction)
    for (const one of parts ?? [action]) this.#thinkBetter(one)
  }

  /** Lets the parties of a transfer that was taken back do something else meanwhile. */
  #thinkBetter(action: Action): void {
    const { transfer } = action
    if (transfer === undefined) return
    const sender = this.addresses.isSweep(transfer)
      ? 'address'
      : this.#isOut(transfer)
        ? 'service'
        : 'payer'
    const fate = this.#chance.pick('fate of a transfer', listFates(sender))
    if (fate === 'another is first') this.addOther(action)
    if (fate === 'payer cancels') this.#pool.push(makeCancel(action, this.#countOther()))
    if (fate === 'payer is broke') this.#broke.set(toAuthorizationKey(transfer), true)
    if (fate === 'recipient is refused') this.#treasury.refuse(transfer.to)
  }

  /** Makes one block more than were taken away: a chain replaces another one by being longer. */
  #makeLonger(count: number): void {
    for (let n = 0; n <= count; n++) this.#block()
  }

  /** Takes the last blocks away; returns what was in them. */
  #forgetLast(count: number): Transaction[] {
    if (count === 0) return []
    this.past.note(
      this.#blocks
        .slice(-count, this.#blocks.length - this.confirmations + 1)
        .flatMap(({ mined }) => mined),
    )
    const gone = this.#blocks.splice(-count).flatMap(({ mined }) => mined)
    for (const { transaction, effect } of gone.flatMap(listEffects)) {
      const { transfer } = transaction.action
      if (transfer !== undefined && (effect === 'moved' || effect === 'canceled'))
        this.#used.delete(toAuthorizationKey(transfer))
    }
    this.#scheduler.note(`chain replaces its last ${count} blocks, of ${gone.length}`)
    return gone.map(({ transaction }) => transaction)
  }

  #block(): void {
    const chance = this.#chance
    const outside = this.#faultProfile.outside
    const mined: Mined[] = []
    const { escrow, permits } = this.last
    this.#made += 1
    this.#blocks.push({ serial: this.#made, seconds: this.seconds, mined, escrow, permits })
    const waiting = this.#pool.sort((a, b) => (a.nonce ?? -1) - (b.nonce ?? -1))
    this.#pool = []
    let next = this.countOurs()
    for (const transaction of waiting) {
      if (transaction.nonce === undefined) {
        mined.push(this.#execute(transaction))
        continue
      }
      if (transaction.nonce < next) continue
      if (chance.happens('node drops', outside)) continue
      if (transaction.nonce > next || chance.happens('node delays', outside * 4)) {
        this.#pool.push(transaction)
        continue
      }
      next += 1
      const { parts } = transaction
      mined.push(parts ? this.#executeJoint(transaction, parts) : this.#executeOurs(transaction))
    }
    if (mined.length === 0) return
    const texts = mined.map((one) => `${one.transaction.hash.slice(0, 10)} ${one.effect}`)
    this.#scheduler.note(`chain block ${this.height}: ${texts.join(', ')}`)
  }

  /** Executes a transaction of the service, and before it, perhaps, that of somebody who saw it. */
  #executeOurs(transaction: Transaction): Mined {
    const chance = this.#chance
    const outside = this.#faultProfile.outside
    const { action } = transaction
    const { transfer } = action
    const isOfPayer =
      transfer !== undefined && !this.#isOut(transfer) && !this.addresses.isSweep(transfer)
    const key = getKey(transaction)
    // A transaction of our own that is reverted once goes through when it is tried again.
    if (!isOfPayer) this.#broke.set(key, chance.happens('token is out of order', outside))
    else if (!this.#broke.has(key)) this.#broke.set(key, chance.happens('payer is broke', outside))
    if (isOfPayer && chance.happens('payer cancels', outside))
      this.#executeOther(makeCancel(action, this.#countOther()))
    if (chance.happens('third party is first', outside * 2))
      this.#executeOther(makeOther(action, this.#countOther()))
    const mined = this.#execute(transaction)
    if (this.#broke.get(key) === true && action.transfer !== undefined)
      this.#maybeLater(transaction)
    return mined
  }

  /** Executes each part by itself, unless one of them uses up the gas of all. */
  #executeJoint(transaction: Transaction, parts: readonly Action[]): Mined {
    if (this.#chance.happens('a wallet uses up the gas', this.#faultProfile.outside))
      return { transaction, effect: 'reverted', parts: [] }
    const mined = parts.map((action) => this.#executeOurs({ ...transaction, action }))
    return { transaction, effect: 'called', parts: mined }
  }

  #executeOther(transaction: Transaction): void {
    this.last.mined.push(this.#execute(transaction))
  }

  /** Every party that saw the authorization can hand it in, also long after, once the payer has money again. */
  #maybeLater(transaction: Transaction): void {
    if (!this.#chance.happens('a third party tries later', 500)) return
    this.#scheduler.after(this.#chance.between('later', 3_000, 90_000), () => {
      this.#broke.set(getKey(transaction), false)
      this.addOther(transaction.action)
    })
  }

  #isOut({ from }: Transfer): boolean {
    return from === this.#network.payTo
  }

  #countOther(): number {
    this.#thirds += 1
    return this.#thirds
  }

  #execute({ parts: _, ...transaction }: Transaction): Mined {
    const effect = this.#computeEffect(transaction)
    const mined = { transaction, effect }
    if (effect === 'moved' || effect === 'canceled')
      this.#used.set(getKey(transaction), { mined, block: this.height })
    return mined
  }

  #computeEffect(transaction: Transaction): Mined['effect'] {
    const { action, isCancel } = transaction
    const key = getKey(transaction)
    const isUsed = this.#used.has(key)
    if (isCancel === true) return isUsed ? 'reverted' : 'canceled'
    const books = this.#computeBooks(action)
    const isBroken = !isUsed && this.#broke.get(key) === true
    if (isBroken || books === undefined || this.#isBarred(action)) return 'reverted'
    Object.assign(this.last, books)
    if (action.transfer === undefined) return 'called'
    return isUsed ? 'nothing' : 'moved'
  }
}

/** The name of what only one transaction can do; a call of the channel contract without an authorization has its own. */
function getKey({ hash, action: { transfer } }: Transaction): string {
  return transfer === undefined ? hash : toAuthorizationKey(transfer)
}
