import type { Logger } from 'pino'
import { awaitWithin } from '../../base/await-within.ts'
import type { Mutex } from '../../base/mutex.ts'
import type { World } from '../../base/world.ts'
import type { Chain } from '../../chain/chain.ts'
import { cancelSession } from '../../database/cancel-session.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { findMissingTable, isCancelled, isTransient } from '../../database/errors.ts'
import { sql } from '../../database/sql.ts'
import type { Collection } from '../../model/readable.ts'
import { readStats } from '../../projections/collection-store.ts'
import {
  addWrittenColumns,
  type ColumnPlace,
  type FilledPage,
  fillPage,
  markWhole,
  noteTarget,
  type WrittenColumn,
} from '../../projections/column-filling.ts'
import type { DataProjection } from '../../projections/data-projection.ts'
import type { ColumnWork } from '../../projections/field-columns.ts'
import { analyzeTable } from '../indexes/index-store.ts'

/** Rows of a page; their number follows the time that the last one took. One that timed out may go below the least. */
const pageRows = { min: 16, first: 128, max: 2_048 }
/** The time that a page is to take: a write of a row that is in it waits so long. */
const pageMs = { least: 4, most: 12 }
/** The pause after a page, which is twice as long as the page took: so the writes have most of the machine. */
const pauseMsMin = 20
const pausePages = 2
/** Pages that failed because of a lock are tried again after so long, then less and less often. */
const lockedMs = { min: 100, max: 2_000 }
/** After other failures. */
const retryMs = 10_000
const stepMs = 10_000
/** Every row that is filled leaves a dead one behind: their room is given back after so many, or a part of all rows. */
const vacuumRowsMin = 20_000
const vacuumParts = 8
const vacuumMs = 3600 * 1000
const endMs = 5_000

export type FillerPorts = {
  readonly app: string
  readonly schema: string
  readonly database: Database
  readonly world: World
  readonly log: Logger
  readonly data: DataProjection
  /** Shared by all applications, so that one page is filled at a time. */
  readonly turns: Mutex
  /** Throws where nothing new may be taken in (the disk is full). */
  readonly refuseFullDisk: (() => void) | undefined
}

/** The way of one table: rows filled since the room of dead ones was given back, and rows of the next page. */
type Pace = { rows: number; sinceVacuum: number; vacuumAfter: number }

/**
 * Gives large tables the columns of declared fields, beside the applier. A column is added without values; from then on
 * the applier writes it with each row, and the rows from before are filled page by page. Reads use it once it is whole.
 * All that a process must know is in the database (see projections/column-filling.ts), so one that is killed loses a
 * page and no more, and the next one goes on.
 */
export class ColumnFiller {
  readonly #ports: FillerPorts
  readonly #stop: () => void
  readonly #paces = new Map<string, Pace>()
  #chain: Chain | undefined
  #running: Promise<void> | undefined
  #isNoticed = false
  #isEnding = false
  /** The process of a statement that may take long. */
  #pid: number | undefined

  constructor(ports: FillerPorts) {
    this.#ports = ports
    this.#stop = ports.world.every(retryMs, () => this.notice())
  }

  /** Begins to work for the chain that the tables follow. */
  start(chain: Chain): void {
    this.#chain = chain
    this.notice()
  }

  /** Notes that the definitions of the application may have changed. */
  notice(): void {
    this.#isNoticed = true
    if (this.#chain === undefined || this.#isEnding) return
    this.#running ??= this.#run(this.#chain).finally(() => {
      this.#running = undefined
    })
  }

  /** Lets the page under way end; the next start goes on. */
  async close(): Promise<void> {
    this.#isEnding = true
    this.#stop()
    const { database, world } = this.#ports
    if (this.#pid !== undefined) await cancelSession(database, this.#pid).catch(() => undefined)
    await awaitWithin(this.#running ?? Promise.resolve(), {
      world,
      ms: endMs,
      otherwise: undefined,
    })
  }

  async #run(chain: Chain): Promise<void> {
    await Promise.resolve()
    const { data } = this.#ports
    while (this.#isNoticed && !this.#isEnding) {
      this.#isNoticed = false
      for (const { id } of data.catalog.byId.values()) await this.#attempt(chain, id)
    }
  }

  /** A collection whose columns cannot be filled is tried again later, and holds up no other one. */
  async #attempt(chain: Chain, id: string): Promise<void> {
    const { log, app } = this.#ports
    try {
      await this.#complete(chain, id)
    } catch (error) {
      if (!this.#isEnding)
        log.warn({ error, app, collection: id }, 'columns of declared fields wait')
    }
  }

  /** Makes the columns of one collection whole. */
  async #complete(chain: Chain, id: string): Promise<void> {
    let waitMs = lockedMs.min
    for (;;) {
      const { data, world } = this.#ports
      const collection = data.catalog.byId.get(id)
      const work = collection && data.findColumnWork(collection)
      if (collection === undefined || work === undefined || this.#isEnding) return
      try {
        this.#ports.refuseFullDisk?.()
        if (work.begun.length > 0) await this.#begin(chain, work)
        else await this.#fill(collection, work)
        waitMs = lockedMs.min
      } catch (error) {
        // The collection was deleted, or got another table; its definition follows.
        if (findMissingTable(error) !== undefined) return
        const isRetried = isTransient(error) || this.#shrinkPage(error, work.table)
        if (!isRetried || this.#isEnding) throw error
        await world.sleep(waitMs)
        waitMs = Math.min(2 * waitMs, lockedMs.max)
      }
    }
  }

  /** Halves the pages of a table after one that took too long; false where that is not the error, or no help. */
  #shrinkPage(error: unknown, table: string): boolean {
    const pace = this.#paces.get(table)
    if (pace === undefined || pace.rows <= 1 || !isCancelled(error)) return false
    pace.rows = Math.floor(pace.rows / 2)
    return true
  }

  async #fill({ id }: Collection, work: ColumnWork): Promise<void> {
    const { schema, turns } = this.#ports
    const place = { schema, table: work.table }
    const pace = this.#paces.get(work.table) ?? (await this.#openPace(place, id))
    // Only pages have turns: to begin, to vacuum and to end may wait for minutes, and others must not wait for that.
    const page = await turns.run(() => this.#fillNext(place, work, pace))
    if (page === undefined) return
    if (page.rows === 0)
      return page.columns.length > 0 ? this.#finish(place, page.columns) : undefined
    pace.sinceVacuum += page.rows
    if (pace.sinceVacuum >= pace.vacuumAfter) await this.#vacuum(place, pace)
  }

  /** Fills a page, and makes the pause after it, which others who fill pages keep too. */
  async #fillNext(
    place: ColumnPlace,
    work: ColumnWork,
    pace: Pace,
  ): Promise<FilledPage | undefined> {
    if (this.#isEnding) return undefined
    const { data, world, database } = this.#ports
    const startedAt = world.ticks()
    const page = await database.transaction(
      (tx) => fillPage(tx, place, { columns: work.filling, rowsMax: pace.rows }),
      { statementTimeoutMs: stepMs, relaxed: true },
    )
    const tookMs = world.ticks() - startedAt
    world.failpoint?.('columns.filled')
    data.noteColumns(place.table, page.known)
    if (page.rows === 0) return page
    if (tookMs < pageMs.least) pace.rows = Math.min(2 * pace.rows, pageRows.max)
    if (tookMs > pageMs.most)
      pace.rows = Math.min(pace.rows, Math.max(Math.floor(pace.rows / 2), pageRows.min))
    await world.sleep(Math.max(pauseMsMin, pausePages * tookMs))
    return page
  }

  /**
   * Adds columns. Transactions of the applier that began before know nothing of them: they have the blocks up to now,
   * whose rows are filled like all earlier ones. Whoever takes over the chain after it was found to be ours finds the
   * columns, and writes them.
   */
  async #begin(chain: Chain, { table, begun }: ColumnWork): Promise<void> {
    const { data, world, schema } = this.#ports
    const place = { schema, table }
    await this.#inTransaction((tx) => addWrittenColumns(tx, place, begun))
    world.failpoint?.('columns.added')
    const added = begun.map((column) => ({
      ...column,
      filled: 0,
      target: undefined,
      isWhole: false,
    }))
    data.noteColumns(place.table, added)
    const { height, size: target } = chain.head()
    await chain.whenApplied(height)
    await chain.confirmHeld()
    world.failpoint?.('columns.confirmed')
    await this.#inTransaction((tx) => noteTarget(tx, place, { columns: added, target }))
    data.noteColumns(
      place.table,
      added.map((column) => ({ ...column, target })),
    )
  }

  /** The planner learns of the values before the first read uses them. */
  async #finish(place: ColumnPlace, columns: readonly WrittenColumn[]): Promise<void> {
    const { data, log, app, world } = this.#ports
    this.#paces.delete(place.table)
    await this.#inLongStatement((session) => analyzeTable(session, place.schema, place.table))
    if (this.#isEnding) return
    // A crash of the database after this must not undo what was filled by relaxed transactions before.
    const known = await this.#inTransaction((tx) => markWhole(tx, place, columns))
    world.failpoint?.('columns.whole')
    data.noteColumns(place.table, known)
    const whole = known.filter(({ isWhole }) => isWhole)
    if (whole.length === 0) return
    const fields = whole.map(({ path }) => path.join('.'))
    log.info({ app, table: place.table, fields }, 'columns of declared fields are whole')
  }

  async #openPace({ schema, table }: ColumnPlace, id: string): Promise<Pace> {
    const stats = (await readStats(this.#ports.database, schema)).get(id)
    const vacuumAfter = Math.max(vacuumRowsMin, (stats?.versions ?? 0) / vacuumParts)
    const pace = { rows: pageRows.first, sinceVacuum: 0, vacuumAfter }
    this.#paces.set(table, pace)
    return pace
  }

  async #vacuum({ schema, table }: ColumnPlace, pace: Pace): Promise<void> {
    pace.sinceVacuum = 0
    await this.#inLongStatement(async (session) => {
      await session.query(sql`SELECT set_config('vacuum_cost_delay', '2', false)`)
      await session.execute(sql`VACUUM (TRUNCATE FALSE) ${sql.id(schema, table)}`)
    })
  }

  /** Runs a statement that may take long, and that the work can do without. */
  async #inLongStatement(work: (session: Queryable) => Promise<void>): Promise<void> {
    const { database, log, app } = this.#ports
    const timeOuts = { statementTimeoutMs: vacuumMs, lockTimeoutMs: lockedMs.max }
    try {
      await database.useDedicatedSession(async (session, pid) => {
        this.#pid = pid
        if (!this.#isEnding) await work(session)
      }, timeOuts)
    } catch (error) {
      if (!this.#isEnding) log.info({ error, app }, 'a table was not vacuumed or analyzed')
    } finally {
      this.#pid = undefined
    }
  }

  #inTransaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    return this.#ports.database.transaction(work, { statementTimeoutMs: stepMs })
  }
}
