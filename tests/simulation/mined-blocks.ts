import { keccak256, toHex } from 'viem'
import type { PaymentNetwork } from '../../packages/server/src/x402/networks.ts'
import type { Chance } from './chance.ts'
import { applyCall, type EscrowBooks, emptyBooks, Revert, readReceiver } from './escrow-model.ts'
import type { FaultProfile } from './life.ts'
import { applyPermitCall, emptyPermitBooks, type PermitBooks } from './permit-model.ts'
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
  /** Since 1970. */
  readonly seconds: number
  readonly mined: Mined[]
  /** The books of the channel contract after it. */
  escrow: EscrowBooks
  /** The books of Permit2 and of what it may move, after it. */
  permits: PermitBooks
}

/** The books after an action; undefined where a contract reverts it. */
type After = { readonly escrow: EscrowBooks; readonly permits: PermitBooks } | undefined

const blockMs = 2_000
/** The sender of what others do in place of the service. */
const somebody = `0x${'5b'.repeat(20)}`

/**
 * The blocks of a simulated chain, what waits for one, and what the token and the channel contract make of it. Blocks
 * come every two seconds; the last ones may be replaced, fewer of them than the confirmations that the service waits for.
 */
export class MinedBlocks {
  /** The blocks that the service waits for, that of the transaction included. */
  readonly confirmations: number
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
  #pool: Transaction[] = []
  #thirds = 0

  constructor(
    network: PaymentNetwork,
    parts: { scheduler: Scheduler; chance: Chance; faultProfile: FaultProfile },
  ) {
    this.#network = network
    this.#scheduler = parts.scheduler
    this.#chance = parts.chance
    this.#faultProfile = parts.faultProfile
    this.confirmations = parts.chance.pick('confirmations', [2, 2, 3, 4])
    const first = { seconds: this.seconds, escrow: emptyBooks, permits: emptyPermitBooks }
    this.#blocks = [1, 2].map(() => ({ ...first, mined: [] }))
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
    this.#pool.push(this.#makeOther(action))
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
    return this.#treasury.refuses(transfer, () => this.funds)
  }

  /** Computes the books of the contracts after it; undefined where one of them reverts. */
  #computeBooks({ escrow, permit }: Action): After {
    const { escrow: channels, permits } = this.last
    const block = { chainId: this.#network.chainId, seconds: BigInt(this.seconds) }
    try {
      if (permit !== undefined) {
        const context = { ...block, sender: permit.sender }
        return { escrow: channels, permits: applyPermitCall(permits, permit.call, context) }
      }
      if (escrow === undefined) return { escrow: channels, permits }
      const context = { ...block, sender: escrow.sender }
      const after = escrow.calls.reduce((one, call) => applyCall(one, call, context), channels)
      return { escrow: after, permits }
    } catch (error) {
      if (error instanceof Revert) return undefined
      throw error
    }
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
    const gone = this.#blocks.splice(-count).flatMap(({ mined }) => mined)
    for (const { transaction, effect } of gone.flatMap(listEffects)) {
      const { transfer } = transaction.action
      if (transfer !== undefined && (effect === 'moved' || effect === 'canceled'))
        this.#used.delete(toAuthorizationKey(transfer))
    }
    this.#pool = [...gone.map(({ transaction }) => transaction), ...this.#pool]
    this.#scheduler.note(`chain replaces its last ${count} blocks, of ${gone.length}`)
  }

  #block(): void {
    const chance = this.#chance
    const outside = this.#faultProfile.outside
    const mined: Mined[] = []
    const { escrow, permits } = this.last
    this.#blocks.push({ seconds: this.seconds, mined, escrow, permits })
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
    const isOfPayer = action.transfer !== undefined && action.transfer.from !== this.#network.payTo
    const key = getKey(transaction)
    // A transaction of our own that is reverted once goes through when it is tried again.
    if (!isOfPayer) this.#broke.set(key, chance.happens('token is out of order', outside))
    else if (!this.#broke.has(key)) this.#broke.set(key, chance.happens('payer is broke', outside))
    if (isOfPayer && chance.happens('payer cancels', outside))
      this.#executeOther(this.#makeCancel(action))
    if (chance.happens('third party is first', outside * 2))
      this.#executeOther(this.#makeOther(action))
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

  /** Makes the transaction of somebody else who does the same, as far as the contracts let him. */
  #makeOther({ to, transfer, escrow, permit }: Action): Transaction {
    this.#thirds += 1
    const what = transfer === undefined ? 'call' : toAuthorizationKey(transfer)
    const hash = keccak256(toHex(`${this.#thirds} ${what}`))
    const sender = escrow?.isByPayer === true ? escrow.sender : somebody
    const action = {
      to,
      ...(transfer && { transfer }),
      ...(escrow && { escrow: { ...escrow, sender } }),
      // An owner's own calls are nobody else's.
      ...(permit && {
        permit: permit.call.kind === 'settle' ? { ...permit, sender: somebody } : permit,
      }),
    }
    return { hash, nonce: undefined, action }
  }

  /** Makes the transaction by which a payer takes back what it has signed. */
  #makeCancel(action: Action): Transaction {
    const other = this.#makeOther(action)
    const { permit } = action
    if (permit?.call.kind !== 'settle') return { ...other, isCancel: true }
    const { owner: sender, nonce } = permit.call.permit
    const call = { kind: 'invalidate', word: nonce >> 8n, mask: 1n << (nonce & 255n) } as const
    return { ...other, action: { to: action.to, permit: { sender, call } } }
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
