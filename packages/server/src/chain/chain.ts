import { limits } from '@tollbase/contract/limits'
import type { ProofBlock } from '@tollbase/verify/block'
import { formatCheckpoint } from '@tollbase/verify/checkpoint'
import type { Entry } from '@tollbase/verify/entry'
import type { Consistency, Inclusion } from '@tollbase/verify/inclusion'
import { Fault, makeInvalidFault } from '../base/fault.ts'
import { Mutex } from '../base/mutex.ts'
import { RandomPool } from '../base/random-pool.ts'
import { toAppliedBlock } from './applier.ts'
import { BlockReader, type HeldBlock } from './block-reader.ts'
import type { Watermark } from './block-store.ts'
import type { BuiltBlock } from './build-block.ts'
import {
  makeBehindFault,
  makeClosingFault,
  makeStoppedFault,
  type StorageRefusal,
} from './chain-faults.ts'
import { makeChainMemory } from './chain-memory.ts'
import type { AppendOptions, ChainHead, ChainParts, Contents } from './chain-options.ts'
import { type Appended, Committer } from './committer.ts'
import { encodeGroup, encodeInTurns, type Group, isLong } from './entries.ts'
import { type EntryPlace, EntryReader, type FoundBytes, type FoundEntry } from './entry-reader.ts'
import { eraseEntries } from './erase-entries.ts'
import { insertBlock } from './insert-block.ts'
import { LogParts } from './log-parts.ts'
import { type Block, type BlockOutline, parseBlockInTurns, parseOutline } from './parse-block.ts'
import { encodeHashes, planConsistency } from './proofs.ts'
import {
  type EntryProof,
  type HashProof,
  type Proven,
  proveEntry,
  proveHash,
  proveInclusion,
} from './prove-entry.ts'
import { TileReader } from './tile-reader.ts'

/** Bytes of entries that wait for their block. */
const queuedBytesMax = 64 * 1024 * 1024
/** Longest wait for the appliers when the chain closes. */
const drainMs = 10_000

/** One application's log, held by this process; made by `openChain` of open-chain.ts. */
export class Chain {
  readonly origin: string
  readonly #parts: ChainParts
  readonly #committer: Committer
  readonly #tiles: TileReader
  readonly #blocks: BlockReader
  readonly #entries: EntryReader
  readonly #random: RandomPool
  /** Held while a long group is encoded: groups that come meanwhile wait, so the order is kept. */
  readonly #encoding = new Mutex()
  #encodings = 0
  #failure: Error | undefined
  #closing: Promise<void> | undefined
  #checkpoint: { readonly size: number; readonly note: string } | undefined

  constructor(parts: ChainParts) {
    const { database, schema, store, signer, world, origin, lease, head, tree, bytes } = parts
    this.#parts = parts
    this.origin = origin
    const memory = parts.memory ?? makeChainMemory(world)
    const cache = memory.proofs.openChain()
    const logParts = new LogParts(database, schema)
    this.#tiles = new TileReader(store, { tree, cache, parts: logParts })
    this.#blocks = new BlockReader(store, { limit: memory.blocks, chain: origin })
    this.#entries = new EntryReader(this.#blocks, { ...cache, parts: logParts })
    this.#random = new RandomPool(world)
    this.#committer = new Committer({
      store,
      insertBlock: (block) => insertBlock(database, { schema, epoch: lease.epoch }, block),
      signer,
      world,
      origin,
      epoch: lease.epoch,
      head,
      bytes,
      tree,
      ensureLease: () => lease.ensure(),
      onTiles: (tiles) => this.#tiles.hold(tiles),
      onTilesDropped: (tiles) => this.#tiles.drop(tiles),
      onCommitted: (block) => this.#committed(block),
      onFailure: (error) => this.#fail(error),
    })
    lease.keep({
      onLost: (error) => {
        this.#committer.fail(error)
        this.#fail(error)
      },
      size: () => ({ height: this.#committer.head.height, bytes: this.#committer.bytes }),
    })
  }

  /** The error for which the chain stopped for good; `Tenants.load` closes it, and opens it anew. */
  get failure(): Error | undefined {
    return this.#failure ?? this.#parts.applierLoop.failure
  }

  /** The storage's refusal of a block or of the tables, unless it has taken some since. */
  get storageRefusal(): StorageRefusal | undefined {
    return this.#committer.storageRefusal ?? this.#parts.applierLoop.storageRefusal
  }

  /** Verifier key of headers and checkpoints. */
  get vkey(): string {
    return this.#parts.signer.vkey
  }

  /**
   * Appends the entries to one block, as one group in their order; resolves once that block is durable. Faults:
   * PAYLOAD_TOO_LARGE, UNAVAILABLE (too far behind, lost to another server, closed). After an UNAVAILABLE from a commit
   * the entries may still be on the chain.
   */
  async append(entries: readonly Entry[], options: AppendOptions = {}): Promise<Appended> {
    this.#refuseUnavailable(entries.length)
    if (options.isOwed !== true) this.#parts.refuseFullDisk?.()
    const salts = this.#parts.salted === true ? this.#random : undefined
    if (this.#encodings === 0 && !isLong(entries))
      return this.#enqueue(encodeGroup(entries, salts), options)
    this.#encodings += 1
    try {
      const group = await this.#encoding.run(() => encodeInTurns(entries, salts))
      // Many of them may have come meanwhile.
      this.#refuseUnavailable(entries.length)
      return this.#enqueue(group, options)
    } finally {
      this.#encodings -= 1
    }
  }

  /** The contents of the log, with the accepted entries that are not in it yet. */
  contents(): Contents {
    const { head, bytes, queuedEntries, queuedBytes } = this.#committer
    return { entries: head.size + queuedEntries, bytes: bytes + queuedBytes }
  }

  /** Resolves when the block of this height is applied; rejects where the applier loop stops before. */
  whenApplied(height: number): Promise<void> {
    return this.#parts.applierLoop.whenApplied(height)
  }

  /**
   * Resolves when the dependents (live views) have caught up with the tables of now, or can no longer do so.
   */
  whenCaughtUp(): Promise<void> {
    return this.#parts.applierLoop.whenCaughtUp()
  }

  /** Resolves to the height at which everything appended before this call is in the log. */
  async flushed(): Promise<number> {
    await this.#encoding.run(async () => undefined)
    return this.#committer.flushed()
  }

  /** The last applied entry; height 0 before the first one. */
  watermark(): { readonly height: number; readonly sequence: number } {
    const { height, sequence } = this.#parts.applierLoop.watermark
    return { height, sequence }
  }

  /**
   * The position at which the tables are read now; undefined while that is uncertain (a commit is under way, or another
   * process could have the chain). Each change gives another object: if two calls return the same object, only the
   * dependents can have changed in between.
   */
  stillPosition(): Watermark | undefined {
    const { applierLoop, lease } = this.#parts
    const isOurs = this.#closing === undefined && this.failure === undefined && lease.isSure()
    return isOurs ? applierLoop.stillPosition : undefined
  }

  /**
   * Throws if another process may have the chain by now. Asks the database only if the lease was not renewed recently,
   * for example after this process was suspended.
   */
  async ensureHeld(): Promise<void> {
    await this.#parts.lease.ensure()
  }

  /** Throws where another process has the chain by now, and may have written what is not known here. */
  async confirmHeld(): Promise<void> {
    if (this.#closing !== undefined) throw makeClosingFault()
    await this.#parts.lease.confirm()
  }

  /** Entries that are queued or committed and not applied yet. */
  lag(): number {
    return (
      this.#committer.head.size -
      this.#parts.applierLoop.watermark.leaf +
      this.#committer.queuedEntries
    )
  }

  /** Age of the oldest entry that is committed and not applied; milliseconds, up to 250 too many. */
  lagMs(): number {
    const { applierLoop, world } = this.#parts
    const since = applierLoop.behindSince()
    return since === undefined ? 0 : Math.max(0, world.now() - since)
  }

  head(): ChainHead {
    const { height, size, root, hash, time } = this.#committer.head
    return { height, size, root: root.toString('base64'), hash: hash.toString('hex'), time }
  }

  /** The signed note of the committed tree. */
  checkpoint(): string {
    const { size, root } = this.#committer.head
    if (this.#checkpoint?.size !== size) {
      const { origin, signer } = this.#parts
      this.#checkpoint = { size, note: signer.signNote(formatCheckpoint({ origin, size, root })) }
    }
    return this.#checkpoint.note
  }

  /** Proves that the leaf is in the tree of this size (the committed one when not given). */
  async inclusion(leafIndex: number, size: number = this.#committer.head.size): Promise<Inclusion> {
    this.#mustBeCommitted(size)
    if (leafIndex >= size) throw new Fault('NO_CHAIN_ENTRY')
    return proveInclusion(this.#tiles, { index: leafIndex, size })
  }

  /** Proves that the tree of size `to` begins with the tree of size `from`. */
  async consistency(from: number, to: number = this.#committer.head.size): Promise<Consistency> {
    this.#mustBeCommitted(to)
    if (from > to)
      throw makeInvalidFault('/from', 'must not be larger than the size it is compared with')
    return { from, to, hashes: encodeHashes(await this.#tiles.hashes(planConsistency(from, to))) }
  }

  /** Reads the committed block for a request, as BlockReader says; undefined where there is none of this height. */
  async holdBlock(height: number, signal?: AbortSignal): Promise<HeldBlock | undefined> {
    return height > this.#committer.head.height ? undefined : this.#blocks.hold(height, signal)
  }

  /** The committed block, for work of which there is little at once; undefined where there is none of this height. */
  async readBlock(height: number): Promise<Block | undefined> {
    const row =
      height > this.#committer.head.height ? undefined : await this.#parts.store.block(height)
    return row === undefined ? undefined : parseBlockInTurns(row)
  }

  /** The same without its entries, which takes no time that grows with them. */
  async readOutline(height: number): Promise<BlockOutline | undefined> {
    const row =
      height > this.#committer.head.height ? undefined : await this.#parts.store.outline(height)
    return row === undefined ? undefined : parseOutline(row)
  }

  /** The leaf's bytes as they were hashed. Faults NO_CHAIN_ENTRY, also where they were erased. */
  async readEntry(place: EntryPlace, signal?: AbortSignal): Promise<FoundBytes> {
    const { firstLeaf, read } = await this.#requireEntry(place, signal)
    const { bytes } = await read()
    if (bytes === undefined) throw new Fault('NO_CHAIN_ENTRY')
    return { bytes, leafIndex: firstLeaf + place.sequence }
  }

  /**
   * Erases entries for good. Their hashes stay, and with them the tree, all proofs and the headers. Entries that are
   * already erased are skipped, so an interrupted call can be repeated. The tables must already have applied these
   * entries, and an entry of the chain must allow the erasure: the audit checks that.
   */
  async erase(leaves: readonly number[]): Promise<void> {
    const { database, schema, world } = this.#parts
    await this.confirmHeld()
    for await (const bytes of eraseEntries(database, { schema, now: world.now() }, leaves)) {
      this.#committer.noteErased(bytes)
      world.failpoint?.('block.erased')
    }
  }

  /**
   * Collects everything that proves an entry against the committed tree; of an erased one the hash is left. Faults
   * NO_CHAIN_ENTRY.
   */
  async prove(place: EntryPlace, signal?: AbortSignal): Promise<EntryProof> {
    return proveEntry(await this.#findProven(place, signal))
  }

  /** Collects what proves the hash of an entry; the entry itself is not read. Faults NO_CHAIN_ENTRY. */
  async proveHash(place: EntryPlace, signal?: AbortSignal): Promise<HashProof> {
    return proveHash(await this.#findProven(place, signal))
  }

  /** Returns the signed header of the block that has a leaf. Faults NO_CHAIN_ENTRY. */
  async readBlockOf(leafIndex: number): Promise<ProofBlock> {
    const { height } = await this.locate(leafIndex)
    const { headerText, signature } = await this.#requireEntry({ height, sequence: 0 })
    return { header: headerText, signature: signature.toString('base64') }
  }

  /** Returns the position of a leaf. Faults NO_CHAIN_ENTRY. */
  async locate(leafIndex: number): Promise<{ readonly height: number; readonly sequence: number }> {
    const committed = leafIndex >= 0 && leafIndex < this.#committer.head.size
    const block = committed ? await this.#parts.store.blockOfLeaf(leafIndex) : undefined
    if (block === undefined) throw new Fault('NO_CHAIN_ENTRY')
    return { height: block.height, sequence: leafIndex - block.firstLeaf }
  }

  /** Yields the committed blocks from this height on, in height order, one at a time until the head is reached. */
  async *blocksFrom(height: number): AsyncGenerator<Block, void, undefined> {
    for (let at = height; at <= this.#committer.head.height; at++) {
      const block = await this.readBlock(at)
      if (block === undefined) throw new Error(`block ${at} is missing; run the audit`)
      yield block
    }
  }

  /** Counts the bytes that blocks from a height up to another have now; fewer once some of their entries are erased. */
  countBodyBytes({ from, to }: { readonly from: number; readonly to: number }): Promise<number> {
    return this.#parts.store.bodyBytes(from - 1, to)
  }

  /** Refuses new entries, commits and applies the waiting ones (for a bounded time), and lets the next holder in. */
  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    await this.#committer.drained()
    this.#committer.fail(makeClosingFault())
    await this.#parts.applierLoop.stop(drainMs)
    try {
      await this.#parts.lease.release()
    } catch (error) {
      // The lease expires by itself.
      this.#parts.log.warn(
        { origin: this.origin, error: String(error) },
        'a chain lease was not released',
      )
    }
  }

  #refuseUnavailable(count: number): void {
    if (this.#closing !== undefined) throw makeClosingFault()
    const { failure } = this
    if (failure !== undefined) throw makeStoppedFault(failure)
    const isBehind = this.lag() + count > limits.applierLagEntriesMax
    if (isBehind || this.#committer.queuedBytes > queuedBytesMax) throw makeBehindFault()
  }

  #enqueue(group: Group, { check, beside }: AppendOptions): Promise<Appended> {
    this.#refuseGrowth(group)
    check?.()
    return this.#committer.enqueue(group, beside)
  }

  #refuseGrowth({ entries, body }: Group): void {
    const before = this.contents()
    const after = { entries: before.entries + entries.length, bytes: before.bytes + body.length }
    this.#parts.refuseGrowth?.(entries, { before, after })
  }

  #committed(block: BuiltBlock): void {
    this.#tiles.release(block.tiles)
    const { height, body, head } = block
    this.#parts.onBlock?.({ entries: block.entryCount })
    this.#parts.applierLoop.push({
      height,
      bytes: body.length,
      entries: block.entryCount,
      time: head.time,
      open: () => toAppliedBlock({ ...block, time: head.time }),
    })
  }

  /** Another producer may be at work, so nothing more is applied here; the next opening applies the rest. */
  #fail(error: unknown): void {
    if (this.#failure !== undefined) return
    this.#failure = error instanceof Error ? error : new Error(String(error))
    void this.#parts.applierLoop.stop(0)
    this.#parts.log.error({ origin: this.origin, error: String(error) }, 'the chain stopped')
  }

  #mustBeCommitted(size: number): void {
    const committed = this.#committer.head.size
    if (size <= committed) return
    const problem = `must not be larger than the tree, which has ${committed} entries`
    throw makeInvalidFault('/size', problem)
  }

  async #requireEntry(place: EntryPlace, signal?: AbortSignal): Promise<FoundEntry> {
    const isCommitted = place.height <= this.#committer.head.height
    const found = isCommitted ? await this.#entries.find(place, signal) : undefined
    if (found === undefined) throw new Fault('NO_CHAIN_ENTRY')
    return found
  }

  /** An entry and the committed tree, whose note and size are taken at one moment. */
  async #findProven(place: EntryPlace, signal?: AbortSignal): Promise<Proven> {
    const found = await this.#requireEntry(place, signal)
    const { size } = this.#committer.head
    const tree = { size, checkpoint: this.checkpoint(), key: this.vkey, tiles: this.#tiles }
    return { found, ...place, tree }
  }
}
