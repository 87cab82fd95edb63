import { limits } from '@tollbase/contract/limits'
import type { Logger } from 'pino'
import { Fault } from '../../base/fault.ts'
import type { World } from '../../base/world.ts'
import { cancelSession } from '../../database/cancel-session.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { isLimitExceeded, toDatabaseFault } from '../../database/errors.ts'
import { ensureExtension } from '../../database/extensions.ts'
import { findReadableById } from '../../model/catalog.ts'
import type { IndexDefinition } from '../../model/definitions.ts'
import { findExtension } from '../../model/index-kinds.ts'
import {
  buildCreateIndex,
  buildCreateStatistics,
  getIndexName,
} from '../../projections/index-ddl.ts'
import type { Tables } from '../applications/tenants.ts'
import {
  analyzeTable,
  dropConcurrently,
  dropStatistics,
  readStoredIndexes,
  readStoredStatistics,
  reindexConcurrently,
} from './index-store.ts'

/** Indexes that one process builds at once, the time that one may take, and attempts before it counts as failed. */
const indexBuildsMax = 2
const indexBuildMs = 6 * 3600 * 1000
const indexAttemptsMax = 6

/** One application's indexes, as the builder knows them. */
type IndexedSchema = {
  tables: Tables
  /** True where there may be work. */
  isDue: boolean
  /** Indexes to be rebuilt, by number, with the callers that wait for them. */
  readonly wanted: Map<number, Rebuild>
  /** Failed attempts, by the index's number. */
  readonly troubles: Map<number, Trouble>
  /** Numbers of the indexes whose values the planner has statistics of. */
  learnt: ReadonlySet<number>
  /** Tables with records from before an index, which must be analyzed for the planner. */
  readonly filled: Set<string>
}

type Trouble = { readonly attempts: number; readonly text: string }
type Rebuild = {
  readonly done: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: Error) => void
}

/** Longer than any read may hold a lock or a snapshot, which the last steps of a build wait for. */
const lockTimeoutMs = limits.queryTimeoutMs * 4
const pauseMinMs = 500
const pauseMaxMs = 60_000
const failed = 'The index could not be built; POST .../rebuild tries again.'
const tooLarge =
  'The index is too large for this database: its condition is too long, or the names of its fields are. PostgreSQL 18 and newer keep longer ones.'

/**
 * Builds indexes concurrently with writes: compares what applications define with what their tables have, at every
 * opening and every change, so that no state of a build is stored and an interrupted build is found and begun
 * again.
 */
export class IndexBuilder {
  readonly #database: Database
  readonly #world: World
  readonly #log: Logger
  readonly #sites = new Map<string, IndexedSchema>()
  readonly #working = new Map<string, Promise<void>>()
  /** Connections at work. */
  readonly #pids = new Set<number>()
  readonly #timers = new Set<() => void>()
  #closed = false

  constructor(parts: { database: Database; world: World; log: Logger }) {
    this.#database = parts.database
    this.#world = parts.world
    this.#log = parts.log
  }

  /** An application was opened, or its definitions have changed. */
  notice(tables: Tables): void {
    const site = this.#sites.get(tables.schema)
    const isOpened = site?.tables.data !== tables.data
    if (site === undefined) {
      const fresh = makeIndexedSchema(tables)
      this.#sites.set(tables.schema, fresh)
    } else site.tables = tables
    // Indexes that exist already were examined when the application was opened.
    const indexes = [...tables.data.catalog.indexes.values()]
    const learnt = site?.learnt
    const isKnown =
      learnt?.size === indexes.length && indexes.every(({ number }) => learnt.has(number))
    if (isOpened || !isKnown || tables.data.listUnbuilt().length > 0) this.#due(tables.schema)
  }

  /** Returns why an index is not built; `isFinal` where it is not tried again by itself. */
  findTrouble(
    schema: string,
    index: { readonly number: number },
  ): { readonly text: string; readonly isFinal: boolean } | undefined {
    const found = this.#sites.get(schema)?.troubles.get(index.number)
    return found && { text: found.text, isFinal: found.attempts >= indexAttemptsMax }
  }

  isRebuilding(schema: string, index: { readonly number: number }): boolean {
    return this.#sites.get(schema)?.wanted.has(index.number) === true
  }

  /** Rebuilds an index while reads use the old one; resolves when it is done. */
  rebuild(tables: Tables, index: IndexDefinition): Promise<void> {
    const { schema } = tables
    this.notice(tables)
    const site = this.#sites.get(schema)
    if (site === undefined || this.#closed) return Promise.reject(new Error(failed))
    site.troubles.delete(index.number)
    const under = site.wanted.get(index.number) ?? makeRebuild()
    site.wanted.set(index.number, under)
    this.#due(schema)
    return under.done
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const stop of this.#timers) stop()
    while (this.#working.size > 0) {
      // Between two statements there is nothing to cancel; the next one sees that it is over.
      for (const pid of this.#pids) await cancelSession(this.#database, pid).catch(() => undefined)
      const stopped = Promise.allSettled(this.#working.values()).then(() => undefined)
      await Promise.race([stopped, this.#pause(50)])
    }
    for (const { wanted } of this.#sites.values())
      for (const { reject } of wanted.values()) reject(new Error(failed))
  }

  #due(schema: string): void {
    const site = this.#sites.get(schema)
    if (site === undefined) return
    site.isDue = true
    this.#startMore()
  }

  #startMore(): void {
    for (const [schema, site] of this.#sites) {
      if (this.#closed || this.#working.size >= indexBuildsMax) return
      if (!site.isDue || this.#working.has(schema)) continue
      site.isDue = false
      const work = this.#settle(site)
        .catch((error: unknown) => {
          this.#log.warn({ schema, error }, 'indexes could not be looked at')
          this.#later(schema, pauseMaxMs)
        })
        .finally(() => {
          this.#working.delete(schema)
          this.#startMore()
        })
      this.#working.set(schema, work)
    }
  }

  /** Makes an application's indexes match its definitions. */
  async #settle(site: IndexedSchema): Promise<void> {
    const { schema } = site.tables
    dropOldTroubles(site)
    const underWay = await this.#clean(site)
    // Another process, or the session of a killed one, is building them; the result is seen later.
    if (underWay.size > 0) this.#later(schema, 2 * pauseMinMs)
    for (const index of site.tables.data.listUnbuilt()) {
      if (this.#closed) return
      const { attempts } = site.troubles.get(index.number) ?? { attempts: 0 }
      if (underWay.has(getIndexName(index)) || attempts >= indexAttemptsMax) continue
      await this.#try(site, index, () => this.#build(site, index))
    }
    for (const number of [...site.wanted.keys()]) {
      const index = [...site.tables.data.catalog.indexes.values()].find(
        (one) => one.number === number,
      )
      if (this.#closed) return
      if (index === undefined) this.#end(site, number, new Error('The index was deleted.'))
      else if (site.tables.data.isBuilt(index))
        await this.#try(site, index, () => this.#remake(site, index))
      else if (site.troubles.has(number)) this.#end(site, number, new Error(failed))
      else this.#later(schema, pauseMinMs)
    }
    await this.#learn(site)
  }

  /**
   * Notes valid indexes, drops broken and undefined ones, and returns the names of those that others are building.
   */
  async #clean(site: IndexedSchema): Promise<ReadonlySet<string>> {
    const { schema, data } = site.tables
    const stored = await readStoredIndexes(this.#database, schema)
    const { indexes, nextNumber } = data.catalog
    const defined = new Map([...indexes.values()].map((index) => [getIndexName(index), index]))
    for (const { name, isValid, isUnderWay } of stored) {
      if (this.#closed) break
      const index = defined.get(name)
      if (isUnderWay) continue
      if (index !== undefined && isValid) data.setBuilt(index, true)
      // An index with a higher number than is known was created just now.
      else if (index !== undefined || parseIndexNumber(name) < nextNumber)
        await this.#inDedicatedSession((session) => dropConcurrently(session, schema, name))
    }
    return new Set(stored.filter(({ isUnderWay }) => isUnderWay).map(({ name }) => name))
  }

  async #build(site: IndexedSchema, index: IndexDefinition): Promise<void> {
    const { schema, data } = site.tables
    const collection = findReadableById(data.catalog, index.collection)
    if (collection === undefined || !isDefined(site, index)) return
    const started = this.#world.now()
    const extension = findExtension(index.index_type)
    await this.#inDedicatedSession(async (session) => {
      const extensionSchema = extension && (await ensureExtension(session, extension))
      const place = { schema, collection, concurrently: true, extensionSchema }
      await session.execute(buildCreateIndex(place, index))
    })
    site.filled.add(collection.table)
    const seconds = (this.#world.now() - started) / 1000
    this.#log.info({ schema, index: index.name, seconds }, 'an index was built')
    if (isDefined(site, index)) data.setBuilt(index, true)
    else
      await this.#inDedicatedSession((session) =>
        dropConcurrently(session, schema, getIndexName(index)),
      )
  }

  /**
   * Creates statistics of how often the values of each index occur, for the planner. Where the server takes none
   * (Citus does not), plans rely on guesses; it is not tried again before the next opening.
   */
  async #learn(site: IndexedSchema): Promise<void> {
    const { schema, data } = site.tables
    const { indexes, nextNumber } = data.catalog
    const stored = await readStoredStatistics(this.#database, schema)
    const defined = new Map([...indexes.values()].map((index) => [getIndexName(index), index]))
    for (const name of stored)
      if (!defined.has(name) && parseIndexNumber(name) < nextNumber)
        await dropStatistics(this.#database, schema, name)
    for (const [name, index] of defined) {
      const collection = findReadableById(data.catalog, index.collection)
      const isNew = !stored.has(name) && data.isBuilt(index)
      const statement = collection && isNew && buildCreateStatistics({ schema, collection }, index)
      if (!statement || this.#closed) continue
      try {
        await this.#database.execute(statement)
      } catch (error) {
        this.#log.warn({ schema, index: index.name, error }, 'the planner cannot learn of an index')
      }
    }
    for (const table of site.filled) {
      await this.#inDedicatedSession((session) => analyzeTable(session, schema, table))
      site.filled.delete(table)
    }
    site.learnt = new Set([...indexes.values()].map(({ number }) => number))
  }

  async #remake(site: IndexedSchema, index: IndexDefinition): Promise<void> {
    await this.#inDedicatedSession((session) =>
      reindexConcurrently(session, site.tables.schema, getIndexName(index)),
    )
    this.#end(site, index.number)
  }

  /** Runs the work; notes its failure and schedules the next attempt. */
  async #try(
    site: IndexedSchema,
    index: IndexDefinition,
    work: () => Promise<void>,
  ): Promise<void> {
    const { schema } = site.tables
    try {
      await work()
      site.troubles.delete(index.number)
    } catch (error) {
      if (!isDefined(site, index) || this.#closed) return
      const isTooLarge = isLimitExceeded(error)
      const before = site.troubles.get(index.number)?.attempts ?? 0
      const attempts = isTooLarge ? indexAttemptsMax : before + 1
      const known = error instanceof Fault ? error : toDatabaseFault(error)
      const text = isTooLarge ? tooLarge : (known?.message ?? failed)
      site.troubles.set(index.number, { attempts, text })
      this.#log.warn({ schema, index: index.name, attempts, error }, 'an index was not built')
      if (attempts >= indexAttemptsMax) this.#end(site, index.number, new Error(text))
      else this.#later(schema, Math.min(pauseMinMs * 2 ** attempts, pauseMaxMs))
    }
  }

  #end(site: IndexedSchema, number: number, error?: Error): void {
    const rebuild = site.wanted.get(number)
    site.wanted.delete(number)
    if (error === undefined) rebuild?.resolve()
    else rebuild?.reject(error)
  }

  #inDedicatedSession<T>(work: (session: Queryable) => Promise<T>): Promise<T> {
    const timeOuts = { statementTimeoutMs: indexBuildMs, lockTimeoutMs }
    return this.#database.useDedicatedSession(async (session, pid) => {
      if (this.#closed) throw new Error('the service ends')
      this.#pids.add(pid)
      try {
        return await work(session)
      } finally {
        this.#pids.delete(pid)
      }
    }, timeOuts)
  }

  #later(schema: string, ms: number): void {
    if (this.#closed) return
    const stop = this.#world.every(ms, () => {
      stop()
      this.#timers.delete(stop)
      this.#due(schema)
    })
    this.#timers.add(stop)
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.#world.every(ms, () => {
        stop()
        resolve()
      })
    })
  }
}

function makeIndexedSchema(tables: Tables): IndexedSchema {
  return {
    tables,
    isDue: false,
    wanted: new Map(),
    troubles: new Map(),
    learnt: new Set(),
    filled: new Set(),
  }
}

/** The number of a deleted index can come again when the application is opened anew. */
function dropOldTroubles({ tables, troubles }: IndexedSchema): void {
  const defined = new Set([...tables.data.catalog.indexes.values()].map(({ number }) => number))
  for (const number of troubles.keys()) if (!defined.has(number)) troubles.delete(number)
}

function isDefined(site: IndexedSchema, index: IndexDefinition): boolean {
  return site.tables.data.catalog.indexes.get(index.id)?.number === index.number
}

function parseIndexNumber(name: string): number {
  return Number(/^i_([0-9]+)/.exec(name)?.[1] ?? Number.POSITIVE_INFINITY)
}

function makeRebuild(): Rebuild {
  let resolve: () => void = () => undefined
  let reject: (error: Error) => void = () => undefined
  const done = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  // Nobody may be waiting.
  done.catch(() => undefined)
  return { done, resolve, reject }
}
