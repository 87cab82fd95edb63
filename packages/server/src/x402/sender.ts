import { assert } from '../base/assert.ts'
import { Fault } from '../base/fault.ts'
import { isHolderGone, makeHolderName } from '../base/lease-holder.ts'
import type { World } from '../base/world.ts'
import type { Database } from '../database/database.ts'
import { readTransactionCount } from './evm-chain.ts'
import type { FeeOffer } from './fees.ts'
import { findOutcomes } from './find-outcomes.ts'
import { GasFunds } from './gas-funds.ts'
import { encodeHex } from './hex.ts'
import { type Joint, joinCalls } from './joint.ts'
import { Journal, type Journaled, type Mark } from './journal.ts'
import type { PaymentNetwork } from './networks.ts'
import { isWithdrawn, Replacer } from './replacer.ts'
import { type Rpc, RpcError } from './rpc.ts'
import { deriveAddress } from './signature.ts'
import { signTransaction } from './transaction.ts'
import { UsedNonces } from './used-nonces.ts'

/** The part of a pino logger that payments use. */
export type PaymentLog = {
  readonly info: (fields: object, text: string) => void
  readonly warn: (fields: object, text: string) => void
}

export type Outgoing = {
  readonly id: string
  readonly to: string
  readonly data: string
  /** The gas limit: fixed by the caller, so that a call that reverts is mined too and leaves no gap. */
  readonly gas: bigint
  /** It may go in one transaction with others that wait at the same time. */
  readonly joins?: boolean
  /** The joint transaction that did not make it: it is signed once more, by itself. */
  readonly leftOutOf?: string
}

export type SenderOptions = {
  readonly database: Database
  readonly rpc: Rpc
  readonly world: World
  readonly network: Pick<PaymentNetwork, 'id' | 'chainId'>
  /** 32 bytes. */
  readonly key: Uint8Array
  readonly log: PaymentLog
  readonly leaseMs?: number
  /**
   * Wei of the most that is paid for a unit of gas, with the tip; a transaction waits while it costs more. Unlimited
   * when not given.
   */
  readonly feeMax?: bigint | undefined
  /** The time after which a transaction that no block took is sent again with higher fees, and twice as long each time. */
  readonly replaceAfterMs?: number
  /**
   * Says of the id of a transaction that an earlier key of the network signed whether it is looked after here; none is
   * where it is not given. Whose key it was may have had other work.
   */
  readonly adopts?: (id: string) => boolean
}

const leaseMsDefault = 6_000
const batchMax = 200
/** The longest that transactions which may go together wait for those before them to reach the node. */
const gatherMsMax = 1_000
const rebroadcastEveryMs = 10_000
const replaceAfterMsDefault = 30_000
const markEveryMs = 250

/** Says of the id of a signed transaction whether it may leave now. Where it throws, the transaction waits. */
export type MayLeave = (id: string) => Promise<boolean>

type Waiting = {
  readonly outgoing: Outgoing
  readonly resolve: (journaled: Journaled) => void
  readonly reject: (error: unknown) => void
}

/**
 * Sends transactions of one key. Nonce, signature and bytes are durably in the journal before anything is sent, so a
 * crash at any point ends with the same bytes mined once. Transactions that arrive together share one commit. One
 * process at a time owns a key, by a lease. If no block takes a transaction, it is replaced by one with the same nonce
 * and higher fees. At most one transaction of a nonce gets into a block, and the journal keeps all of them.
 */
export class JournaledSender {
  readonly address: string
  readonly #options: SenderOptions
  readonly #journal: Journal
  readonly #replacer: Replacer
  readonly #funds: GasFunds
  readonly #usedNonces: UsedNonces
  readonly #holder: string
  readonly #timers: (() => void)[] = []
  #queue: Waiting[] = []
  #marks: Mark[] = []
  #pump: Promise<void> | undefined
  /** Undefined until it is read (again) from journal and chain. */
  #nonce: bigint | undefined
  #mayLeave: MayLeave = async () => true
  #stopped = false

  constructor(options: SenderOptions) {
    const { database, world, network } = options
    this.#options = options
    this.address = deriveAddress(options.key)
    this.#holder = makeHolderName(world)
    this.#journal = new Journal({
      database,
      world,
      owner: { network: network.id, signer: this.address, holder: this.#holder },
    })
    const { rpc, key, log, feeMax, replaceAfterMs = replaceAfterMsDefault } = options
    this.#funds = new GasFunds({ rpc, world, address: this.address, feeMax })
    this.#usedNonces = new UsedNonces(rpc, world)
    this.#replacer = new Replacer({
      ...{ journal: this.#journal, address: this.address, readFees: () => this.#funds.read() },
      ...{ world, log, key, feeMax, replaceAfterMs },
    })
  }

  /**
   * Waits for the lease, then broadcasts again what an earlier run left undecided. `mayLeave` is asked before each
   * broadcast, the first one and each that follows; all may leave where it is not given.
   */
  async start(mayLeave: MayLeave = this.#mayLeave): Promise<void> {
    this.#mayLeave = mayLeave
    const { world } = this.#options
    const leaseMs = this.#options.leaseMs ?? leaseMsDefault
    const deadline = world.now() + 2 * leaseMs
    let dead = ''
    for (;;) {
      const other = await this.#journal.lease(leaseMs, dead)
      if (other === undefined) break
      if (world.now() > deadline) {
        throw new Fault('UNAVAILABLE', { internal: `${this.address} is in use by ${other}` })
      }
      dead = isHolderGone(other) ? other : ''
      if (dead === '') await world.sleep(leaseMs / 10)
    }
    this.#every(leaseMs / 4, () => this.#renew(leaseMs))
    this.#every(markEveryMs, () => this.#flushMarks())
    this.#every(rebroadcastEveryMs, () => this.resume(rebroadcastEveryMs))
    // An unreachable chain must not keep the service from starting; the timer tries again.
    await this.resume(0).catch((error: unknown) => {
      this.#options.log.warn({ error }, 'undecided transactions wait for the payment network')
    })
  }

  /**
   * Journals and broadcasts. An id that is journaled already is only broadcast again, as it is there. Those that may go
   * together, and wait while others are on their way to the node, share one transaction. If it throws, the transaction
   * may be in the journal or not: ask `find`.
   */
  send(outgoing: Outgoing): Promise<Journaled> {
    if (this.#stopped) return Promise.reject(new Fault('UNAVAILABLE'))
    return new Promise((resolve, reject) => {
      this.#queue.push({ outgoing, resolve, reject })
      this.#pump ??= this.#pumpAll()
    })
  }

  /** Finds the transaction of an id, which may be a joint one. */
  async find(id: string): Promise<Journaled | undefined> {
    return (await this.#journal.find([id])).get(id)
  }

  /** Lists the ids that begin so, each with the hash of what is sent under it now. */
  listNames(idStart: string): ReturnType<Journal['listNames']> {
    return this.#journal.listNames(idStart)
  }

  /** Forgets all transactions whose ids begin so: their nonces are used in blocks which nobody replaces any more. */
  forget(idStarts: readonly string[]): Promise<void> {
    return this.#journal.forget(idStarts)
  }

  /** Lists the last transactions of the key, newest first. */
  listNewest(count: number): Promise<Journaled[]> {
    return this.#journal.listNewest(count)
  }

  /** Finds when the last joint transaction since then was signed that did not make all its parts. */
  findJointLoss(sinceMs: number): Promise<number | undefined> {
    return this.#journal.findJointLoss(sinceMs)
  }

  /**
   * Returns the number of transactions that the key has sent: those in blocks by the chain's count, and those that
   * the journal knows.
   */
  async sent(): Promise<{ readonly mined: bigint; readonly journaled: bigint }> {
    // The order matters: any transaction in a block by now was journaled before.
    const mined = await readTransactionCount(this.#options.rpc, this.address)
    return { mined, journaled: await this.#journal.nextNonce() }
  }

  /** Remembers a transaction's outcome on the chain; written soon, together with others. */
  note(mark: Mark): void {
    this.#marks.push(mark)
  }

  /** Returns the key's funds for gas, in the smallest unit of the chain's own coin; at most some seconds old. */
  async balance(): Promise<bigint> {
    return (await this.#funds.read()).balance
  }

  /** Throws UNAVAILABLE while the key cannot pay the gas of a few transactions. */
  async requireFunds(gas: bigint): Promise<void> {
    await this.#funds.requireFor(gas)
  }

  /**
   * Decides, or broadcasts again, perhaps with higher fees, the transactions that were signed so long ago and are not
   * known to be in a block, or were in a block that the chain has forgotten: the gap would hold back everything after
   * it. Those of earlier keys are sent again as they are.
   */
  async resume(olderThanMs: number): Promise<void> {
    const { rpc, world, log, adopts } = this.#options
    const createdMsMax = world.now() - olderThanMs
    const mined = await readTransactionCount(rpc, this.address)
    const rows = await this.#journal.undecided(mined, createdMsMax)
    const left = adopts === undefined ? [] : await this.#journal.listLeft(createdMsMax)
    const earlier = left.filter(({ id }) => adopts?.(id))
    const counts = new Map([[this.address, mined]])
    for (const { signer } of earlier)
      if (!counts.has(signer)) counts.set(signer, await readTransactionCount(rpc, signer))
    const found = await findOutcomes(rpc, this.#usedNonces, { rows: [...earlier, ...rows], counts })
    for (const mark of found.marks) this.note(mark)
    for (const { id, hash } of found.replaced)
      log.warn({ id, hash }, 'a foreign transaction took the nonce')
    await this.#flushMarks()
    const { open } = found
    const isOurs = ({ signer }: Journaled) => signer === this.address
    await Promise.all(open.filter((row) => !isOurs(row)).map((row) => this.#broadcast(row)))
    const old = await this.#replacer.replaceOld(open.filter(isOurs))
    const sent = await Promise.all(old.map((row) => this.#broadcast(row)))
    const empty = await this.#replacer.withdraw(old.filter((_, at) => sent[at] === false))
    await Promise.all(empty.map((row) => this.#broadcast(row)))
  }

  /** Ends timers and releases the key; transactions under way stay in the journal. */
  async stop(): Promise<void> {
    this.#stopped = true
    for (const stop of this.#timers.splice(0)) stop()
    await this.#pump
    await this.#flushMarks()
    await this.#journal.release()
  }

  async #pumpAll(): Promise<void> {
    // Those that come in the same turn go together.
    await Promise.resolve()
    while (this.#queue.length > 0) {
      const batch = this.#queue.splice(0, batchMax)
      try {
        const journaled = await this.#journalBatch(batch.map((waiting) => waiting.outgoing))
        // The next batch is signed while this one is on its way; the chain sorts by nonce.
        const sent = this.#broadcastBatch(batch, journaled)
        if (batch.some(({ outgoing }) => outgoing.joins === true)) await this.#gather(sent)
      } catch (error) {
        // The rows may or may not be there; the next batch reads which nonce is free.
        this.#nonce = undefined
        for (const { reject } of batch) reject(error)
      }
    }
    // This happens in the same step as the last look at the queue, so that nobody waits for a pump that has ended.
    this.#pump = undefined
  }

  /** Broadcasts each transaction once, whoever waits for it. */
  #broadcastBatch(
    batch: readonly Waiting[],
    journaled: ReadonlyMap<string, Journaled>,
  ): Promise<unknown> {
    const sent = new Map<string, Promise<void>>()
    for (const { outgoing, resolve, reject } of batch) {
      const row = journaled.get(outgoing.id)
      assert(row !== undefined, 'every transaction of a batch is journaled')
      const broadcast = sent.get(row.id) ?? this.#broadcastOnce(row)
      sent.set(row.id, broadcast)
      broadcast.then(() => resolve(row), reject)
    }
    return Promise.allSettled(sent.values())
  }

  /** Lets those that may go together pile up until the node has the ones before them. */
  #gather(sent: Promise<unknown>): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#options.world.every(gatherMsMax, end)
      function end() {
        stop()
        resolve()
      }
      void sent.then(end)
    })
  }

  async #journalBatch(batch: readonly Outgoing[]): Promise<Map<string, Journaled>> {
    const known = await this.#journal.find([...new Set(batch.map((outgoing) => outgoing.id))])
    const fresh = new Map(
      batch
        .filter(({ id, leftOutOf }) => !known.has(id) || known.get(id)?.id === leftOutOf)
        .map((outgoing) => [outgoing.id, outgoing]),
    )
    if (fresh.size === 0) return known
    const fees = await this.#funds.read()
    this.#nonce ??= await this.#freeNonce()
    const first = this.#nonce
    const rows = joinCalls([...fresh.values()]).map((outgoing, index) =>
      this.#sign(outgoing, first + BigInt(index), this.#funds.computeOffer(fees)),
    )
    if (!(await this.#journal.insert(rows))) {
      throw new Fault('UNAVAILABLE', { internal: `the lease of ${this.address} was lost` })
    }
    this.#options.world.failpoint?.('payment.journaled')
    this.#nonce = first + BigInt(rows.length)
    for (const row of rows) for (const id of [row.id, ...row.parts]) known.set(id, row)
    return known
  }

  #sign(
    { id, to, data, gas, parts = [] }: Outgoing & Partial<Joint>,
    nonce: bigint,
    offer: FeeOffer,
  ): Journaled {
    const { network, key, world } = this.#options
    const { chainId } = network
    const signed = signTransaction({ chainId, nonce, ...offer, gas, to, data }, key)
    return {
      ...{ id, signer: this.address, nonce, ...signed, parts },
      ...{ earlierRaws: [], earlierHashes: [], replacedAtMs: [] },
      ...{ state: 'signed', blockNumber: null, createdAtMs: BigInt(world.now()) },
    }
  }

  async #broadcastOnce(row: Journaled): Promise<void> {
    // One that may not leave is withdrawn when it is looked at again.
    if (row.state === 'signed') await this.#broadcast(row)
  }

  /**
   * Returns false where the transaction may not leave any more, and was not sent. Never throws: one that did not arrive
   * stays journaled and is sent again later.
   */
  async #broadcast(row: Journaled): Promise<boolean> {
    try {
      if (!isWithdrawn(row) && !(await this.#mayLeave(row.id))) return false
      await this.#options.rpc.call('eth_sendRawTransaction', [encodeHex(row.raw)])
      this.#options.world.failpoint?.('payment.broadcast')
    } catch (error) {
      if (error instanceof RpcError && /already|nonce too low/i.test(error.message)) return true
      this.#options.log.warn({ id: row.id, hash: row.hash, error }, 'a transaction was not taken')
    }
    return true
  }

  /** Returns the next free nonce; only the chain counts this key's transactions from elsewhere. */
  async #freeNonce(): Promise<bigint> {
    const { mined, journaled } = await this.sent()
    if (mined > journaled) return mined
    return journaled
  }

  async #renew(leaseMs: number): Promise<void> {
    const other = await this.#journal.lease(leaseMs)
    if (other !== undefined) this.#options.log.warn({ other }, 'another process uses this key')
  }

  async #flushMarks(): Promise<void> {
    const marks = this.#marks.splice(0)
    if (marks.length > 0) await this.#journal.mark(marks)
  }

  #every(ms: number, work: () => Promise<void>): void {
    const { world, log } = this.#options
    let running = false
    const stop = world.every(ms, () => {
      if (running) return
      running = true
      work()
        .catch((error: unknown) => log.warn({ error }, 'upkeep of the transaction sender failed'))
        .finally(() => {
          running = false
        })
    })
    this.#timers.push(stop)
  }
}
