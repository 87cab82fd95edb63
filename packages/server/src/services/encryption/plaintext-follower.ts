import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import type { Database } from '../../database/database.ts'
import { findMissingTable } from '../../database/errors.ts'
import type { Catalog } from '../../model/catalog.ts'
import { isQueryable } from '../../model/encrypted-collections.ts'
import type { Collection } from '../../model/readable.ts'
import type { DataProjection } from '../../projections/data-projection.ts'
import {
  addOpened,
  deletePlaintext,
  lockPlaintext,
  type PlaintextPlace,
  readUnopened,
  type SealedVersion,
} from '../../projections/plaintext-table.ts'
import type { Sealer } from './sealer.ts'

/** Versions that are opened at once, and bytes of their envelopes. */
export const openedAtOnceMax = 500
const openedBytesAtOnceMax = 1024 * 1024
/** Time after which a step that failed is tried again. */
const retryMs = 10_000
/** The time that a step under way gets to end by itself. */
const endMs = 5_000
/** Shorter than the statements of the applier wait. */
const stepMs = 10_000

export type FollowerPorts = {
  readonly app: string
  readonly schema: string
  readonly database: Database
  readonly world: World
  readonly log: Logger
  readonly data: DataProjection
  readonly sealer: Sealer
}

type Progress = {
  /** The number of the collection's table, which another form of the collection has not. */
  readonly number: number
  /** The plaintext table has so many leaves, and all of the blocks up to this height. */
  readonly leaf: bigint
  readonly height: bigint
  /** It has had everything once since this process began with it. */
  readonly isFilled: boolean
}

type Waiter = { readonly isOver: () => boolean; readonly resolve: () => void }

/**
 * Fills the plaintext tables of an application's queryable collections from the sealed ones, behind the applier, which
 * needs no keys for that reason. A step opens a page of versions and takes their position in one transaction, so a
 * process that is killed loses a step and no more.
 */
export class PlaintextFollower {
  readonly #ports: FollowerPorts
  /** By collection id. */
  readonly #progress = new Map<string, Progress>()
  readonly #running = new Map<string, Promise<void>>()
  /** Numbers of tables that were emptied for want of keys. */
  readonly #emptied = new Set<number>()
  /** Collections whose tables have changed since their step began. */
  readonly #noticed = new Set<string>()
  #waiters: Waiter[] = []
  #listed: { readonly of: Catalog | undefined; readonly queryable: readonly Collection[] } = {
    of: undefined,
    queryable: [],
  }
  readonly #stop: () => void
  #isEnding = false

  constructor(ports: FollowerPorts) {
    this.#ports = ports
    this.#stop = ports.world.every(retryMs, () => this.notice())
  }

  /** Notes that the tables of the application may have changed. */
  notice(): void {
    if (this.#isEnding) return
    for (const collection of this.#list()) this.#begin(collection)
  }

  /**
   * Makes sure that the plaintext of a collection may be read now: 503 where its keys cannot be had, or where the
   * table is not filled yet.
   */
  async requireReadable(collection: Collection): Promise<void> {
    // Serving longer than the keys could be had would make their end a wish.
    await this.#ports.sealer.prepare(collection)
    if (this.#isFilled(collection)) return
    this.#begin(collection)
    const ready = this.#wait(() => this.#isFilled(collection))
    await this.#awaitWithin(ready, limits.plaintextReadWaitMs)
    if (this.#isFilled(collection)) return
    throw new Fault('UNAVAILABLE', {
      message: `The plaintext table of ${collection.name} is being filled; ask again shortly`,
      details: { collection: collection.name },
      retryAfterSeconds: 1,
    })
  }

  /** Waits, for a bounded time, until these collections are complete up to now. */
  async whenFilled(ids: readonly string[]): Promise<void> {
    const collections = ids.flatMap((id) => this.#find(id) ?? [])
    for (const one of collections) this.#begin(one)
    const filled = this.#wait(() => collections.every((one) => this.#isFilled(one)))
    await this.#awaitWithin(filled, limits.resealingWaitMs)
  }

  /** Waits, for a bounded time, until the plaintext table of a collection has this block, where there is such a table. */
  async whenCopied(id: string, height: number): Promise<void> {
    const collection = this.#find(id)
    if (collection === undefined) return
    this.#begin(collection)
    const copied = this.#wait(
      () => (this.#getProgress(collection)?.height ?? -1n) >= BigInt(height),
    )
    await this.#awaitWithin(copied, limits.plaintextWriteWaitMs)
  }

  /** Lets the steps under way end; the next start goes on. */
  async close(): Promise<void> {
    this.#isEnding = true
    this.#stop()
    for (const { resolve } of this.#waiters.splice(0)) resolve()
    await this.#awaitWithin(
      Promise.all(this.#running.values()).then(() => undefined),
      endMs,
    )
  }

  /** A catalog never changes, so its queryable collections are looked for once. */
  #list(): readonly Collection[] {
    const { catalog } = this.#ports.data
    if (this.#listed.of !== catalog) {
      const queryable = [...catalog.byId.values()].filter(isQueryable)
      this.#listed = { of: catalog, queryable }
      // A table that is made again later begins anew.
      for (const id of this.#progress.keys())
        if (!queryable.some((one) => one.id === id)) this.#progress.delete(id)
    }
    return this.#listed.queryable
  }

  #find(id: string): Collection | undefined {
    const collection = this.#ports.data.catalog.byId.get(id)
    return collection !== undefined && isQueryable(collection) ? collection : undefined
  }

  #getProgress({ id, number }: Collection): Progress | undefined {
    const progress = this.#progress.get(id)
    return progress?.number === number ? progress : undefined
  }

  #isFilled(collection: Collection): boolean {
    return this.#getProgress(collection)?.isFilled === true
  }

  #begin({ id }: Collection): void {
    this.#noticed.add(id)
    if (this.#isEnding || this.#running.has(id)) return
    const running = this.#run(id).finally(() => this.#running.delete(id))
    this.#running.set(id, running)
  }

  async #run(id: string): Promise<void> {
    const { log, app } = this.#ports
    try {
      while (this.#noticed.delete(id) && !this.#isEnding) {
        const collection = this.#find(id)
        if (collection === undefined) this.#progress.delete(id)
        else if (!(await this.#step(collection))) this.#noticed.add(id)
      }
    } catch (error) {
      this.#noticed.delete(id)
      // The collection was deleted, or is to have another table; its definition follows.
      if (findMissingTable(error) !== undefined) this.#progress.delete(id)
      else log.warn({ error, app, collection: id }, 'a plaintext table waits')
    }
  }

  /** Copies a page; true where none is left. */
  async #step(collection: Collection): Promise<boolean> {
    const { database, schema, world, sealer } = this.#ports
    const place = { schema, collection }
    if (this.#getProgress(collection) === undefined) await this.#open(place, collection)
    await sealer.prepare(collection)
    const max = { rows: openedAtOnceMax, bytes: openedBytesAtOnceMax }
    const { from, versions: sealed, to, all } = await readUnopened(database, place, max)
    const versions = await this.#openAll(collection, sealed)
    const known = this.#getProgress(collection)
    // A table that was made anew, or emptied by a crash of the database, is not filled any more.
    const isSame = known !== undefined && known.leaf <= from
    if (!isSame) this.#note(collection, { leaf: from, height: -1n, isFilled: false })
    const unopened = sealed.length - versions.length
    const page = { from, to, versions, unopened, now: world.now() }
    world.failpoint?.('plaintext.opened')
    const isAdded = await database.transaction((tx) => addOpened(tx, place, page), {
      statementTimeoutMs: stepMs,
    })
    if (!isAdded) return false
    if (this.#find(collection.id) === undefined) return true
    world.failpoint?.('plaintext.copied')
    const isFilled = all || (isSame && known.isFilled)
    const height = all ? to.height : to.height - 1n
    this.#note(collection, { leaf: to.leaf, height, isFilled })
    this.#wake()
    return all
  }

  /** Begins with a table that an earlier process left. Without keys it is emptied: nobody could read it here. */
  async #open(place: PlaintextPlace, collection: Collection): Promise<void> {
    try {
      await this.#ports.sealer.prepare(collection)
    } catch (error) {
      if (!this.#emptied.has(collection.number))
        await this.#ports.database.transaction(async (tx) => {
          await lockPlaintext(tx, place)
          await deletePlaintext(tx, place)
        })
      this.#emptied.add(collection.number)
      throw error
    }
    this.#emptied.delete(collection.number)
    this.#note(collection, { leaf: 0n, height: -1n, isFilled: false })
  }

  #note({ id, number }: Collection, progress: Omit<Progress, 'number'>): void {
    this.#progress.set(id, { number, ...progress })
  }

  #openAll(
    collection: Collection,
    versions: readonly SealedVersion[],
  ): Promise<readonly SealedVersion[]> {
    const { sealer, log, app } = this.#ports
    return sealer.openIntact(collection, versions, ({ height, sequence }) => {
      const where = { app, collection: collection.name, height: Number(height), sequence }
      log.error(where, 'a sealed version does not open, and is left out of the plaintext table')
    })
  }

  #wait(isOver: () => boolean): Promise<void> {
    if (isOver() || this.#isEnding) return Promise.resolve()
    return new Promise((resolve) => this.#waiters.push({ isOver, resolve }))
  }

  #wake(): void {
    const over = this.#waiters.filter(({ isOver }) => isOver())
    this.#waiters = this.#waiters.filter((one) => !over.includes(one))
    for (const { resolve } of over) resolve()
  }

  #awaitWithin(promise: Promise<void>, ms: number): Promise<void> {
    return awaitWithin(promise, { world: this.#ports.world, ms, otherwise: undefined })
  }
}
