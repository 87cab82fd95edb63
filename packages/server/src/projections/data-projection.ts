import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { type Catalog, emptyCatalog } from '../model/catalog.ts'
import type { IndexDefinition } from '../model/definitions.ts'
import { findExtension } from '../model/index-kinds.ts'
import type { Collection, Readable } from '../model/readable.ts'
import type { FieldColumns } from '../query/field-column.ts'
import type { WrittenColumn } from './column-filling.ts'
import { getDataSetTableName } from './data-set-table.ts'
import { applyDefinition, loadCatalog } from './definitions/apply-definition.ts'
import { applyErase, applyExpire, expiredTable, hasExpiredTable } from './expiry.ts'
import {
  type ColumnProgress,
  type ColumnWork,
  filterFieldColumns,
  findColumnProgress,
  findColumnWork,
  listWrittenColumns,
  readFieldColumns,
  type StoredColumns,
  type TableColumns,
} from './field-columns.ts'
import { buildCreateIndex, getIndexName, tryCreateIndex } from './index-ddl.ts'
import { applyWithLiveViews, type LiveViews } from './live-views.ts'
import { type Sent, sendRecords } from './project-records.ts'
import type { EntryRun, Projection, ReplayOptions } from './projection.ts'
import { applyReseals, hasResealedTable, resealedTable } from './reseal.ts'
import { distrustOtherMeanings, noteRefresh, readProgress, viewStateTable } from './view-state.ts'
import { listViewTables } from './view-tables.ts'
import { Watchers } from './waiting-requests.ts'
import { WaitingViews } from './waiting-views.ts'

/** The service's callbacks for changes of the tables; replays of the log have none. */
export type DataListener = {
  /** Definitions have changed, and are in force. */
  readonly onChange: () => void
  /** There may be views to fill. */
  readonly onViews: () => void
  /** Entries were applied, and what they define is in force. */
  readonly onApplied: () => void
  readonly live: LiveViews
  /** The ticks of a clock that never goes back. */
  readonly ticks: () => number
}

/**
 * The tables of one application's data: its definitions, and a table per collection.
 *
 * A record on its way, from `POST /store` to a live view that shows it:
 * 1. `operations/records/store-records.ts` checks it. `Chain.append` (`chain/chain.ts`) makes a leaf of it
 *    (`chain/entries.ts`), and `chain/committer.ts` puts what waits into a block (`chain/build-block.ts`), which
 *    `chain/insert-block.ts` makes durable. The answer can be sent now.
 * 2. The chain hands the block to `chain/applier-loop.ts`, which takes blocks in turns and gives their entries to
 *    `projections/make-applier.ts`, and this to the projection of their type: this one.
 * 3. `projections/project-records.ts` writes the versions into the collection's table, in one transaction with the
 *    watermark.
 * 4. In the same transaction `projections/live-views.ts` advances the views by their programs, unless
 *    `waiting-views.ts` lets them wait for the next block. `planView` (`views/view-program.ts`) plans a program: its
 *    input is the versions that came and went (`buildSource`, `views/delta-relation.ts`). The rows of a GROUP BY are
 *    written by `printStateStep` (`views/group-state.ts`), all others by `views/view-rows.ts`.
 * 5. A list or SQL (`query/compile-list.ts`, `query/compile/compile-query.ts`) reads the table of a collection or view
 *    by one statement, which `services/reading/run-query.ts` runs. A record that is asked for by its key is read by
 *    `projections/read-records.ts`.
 */
export class DataProjection implements Projection {
  readonly types = ['definition', 'record', 'view_refresh', 'expire', 'erase', 'reseal'] as const
  /** The requests that wait for versions that the tables do not show yet. */
  readonly watchers = new Watchers()
  #catalog: Catalog = emptyCatalog
  /** Numbers of the indexes that are whole. */
  #built = new Set<number>()
  /** Numbers of the views that have been filled once, so that they can be read. */
  #filled = new Set<number>()
  /** The field columns of each table, and those of them that are written with each row. */
  #fieldColumns: TableColumns = new Map()
  #written: ReadonlyMap<string, readonly WrittenColumn[]> = new Map()
  #hasExpired = false
  #hasResealed = false
  /** Live views that lack what the tables have. */
  readonly waiting: WaitingViews
  readonly #listener: DataListener | undefined
  readonly #hasIndexesLater: boolean

  constructor(listener?: DataListener, options: ReplayOptions = {}) {
    this.#listener = listener
    this.#hasIndexesLater = options.hasIndexesLater === true
    this.waiting = new WaitingViews(() => listener?.ticks() ?? 0)
  }

  get catalog(): Catalog {
    return this.#catalog
  }

  /** Returns true if the index serves reads; otherwise it is being built beside the writes, or waits for that. */
  isBuilt(index: { readonly number: number }): boolean {
    return this.#built.has(index.number)
  }

  /** Notes that an index was built beside the applier, or found broken. */
  setBuilt(index: { readonly number: number }, isBuilt: boolean): void {
    if (isBuilt) this.#built.add(index.number)
    else this.#built.delete(index.number)
  }

  /** The columns that a collection's table has, whole, for its declared fields. */
  getFieldColumns(readable: Readable): FieldColumns | undefined {
    if (readable.kind !== 'collection') return undefined
    return filterFieldColumns(readable, this.#fieldColumns.get(readable.table))
  }

  /** Returns what is to be done for the columns of a collection, beside the applier; undefined where they are whole. */
  findColumnWork(collection: Collection): ColumnWork | undefined {
    return findColumnWork(collection, this.#fieldColumns)
  }

  /** Returns how far the columns of a collection are that are filled beside the applier. */
  findColumnProgress(collection: Collection): ColumnProgress | undefined {
    return findColumnProgress(collection, this.#fieldColumns)
  }

  /** Notes how far columns are that are filled beside the applier. Its next transactions write them with each row. */
  noteColumns(table: string, columns: readonly WrittenColumn[]): void {
    const now = columns.map(
      (written) => [written.name, { isWhole: written.isWhole, written }] as const,
    )
    const stored = new Map([...(this.#fieldColumns.get(table) ?? []), ...now])
    this.#setFieldColumns(new Map([...this.#fieldColumns, [table, stored]]))
  }

  #setFieldColumns(tables: TableColumns): void {
    this.#fieldColumns = tables
    this.#written = listWrittenColumns(tables)
  }

  /** True if versions of records have expired, so that there is a table of them. */
  get hasExpired(): boolean {
    return this.#hasExpired
  }

  /** True if the encryption of a filled collection was ever changed, so that there is a table of its versions. */
  get hasResealed(): boolean {
    return this.#hasResealed
  }

  /** Returns true if a view has rows to read. */
  isFilled(view: { readonly number: number }): boolean {
    return this.#filled.has(view.number)
  }

  setFilled(view: { readonly number: number }): void {
    this.#filled.add(view.number)
  }

  catchUpAt(): number | undefined {
    return this.waiting.catchUpAt()
  }

  /** The indexes that are not built. */
  listUnbuilt(): IndexDefinition[] {
    return [...this.#catalog.indexes.values()].filter((index) => !this.isBuilt(index))
  }

  /**
   * Makes the indexes of collections that are not there, as after a replay. Those that need an extension of the
   * database, and those of views, which are filled later, are left to the service.
   */
  async createIndexes(tx: Queryable, schema: string): Promise<void> {
    for (const index of this.listUnbuilt()) {
      const collection = this.#catalog.byId.get(index.collection)
      if (collection === undefined || findExtension(index.index_type) !== undefined) continue
      const isBuilt = await tryCreateIndex(tx, buildCreateIndex({ schema, collection }, index))
      this.setBuilt(index, isBuilt)
    }
  }

  tables(schema: string): SqlStatement[] {
    return [
      sql`CREATE TABLE ${sql.id(schema, 'definition')} (
        kind text NOT NULL, id text NOT NULL, body text NOT NULL, leaf int8 NOT NULL,
        CONSTRAINT definition_pkey PRIMARY KEY (kind, id))`,
      sql`CREATE TABLE ${sql.id(schema, 'collection_stats')} (
        collection text NOT NULL, documents int8 NOT NULL, bytes int8 NOT NULL, versions int8 NOT NULL,
        CONSTRAINT collection_stats_pkey PRIMARY KEY (collection))`,
    ]
  }

  tableNames(): string[] {
    const { collections, resealings } = this.#catalog
    const begun = [...resealings.values()].filter(({ state }) => state === 'copying')
    const tables = [...collections.values(), ...begun].map(({ number }) => `c_${number}`)
    const sets = [...this.#catalog.dataSets.values()].map(getDataSetTableName)
    const expired = this.#hasExpired ? [expiredTable] : []
    const resealed = this.#hasResealed ? [resealedTable] : []
    return ['definition', 'collection_stats', ...tables, ...sets, ...expired, ...resealed]
  }

  derivedTableNames(): string[] {
    const { views } = this.#catalog
    return views.size === 0 ? [] : [viewStateTable, ...[...views.values()].flatMap(listViewTables)]
  }

  async load(database: Queryable, schema: string): Promise<void> {
    this.#catalog = await loadCatalog(database, schema)
    const whole = await database.query<{ name: string }>(sql`
      SELECT class.relname::text AS name FROM pg_catalog.pg_index AS index
      JOIN pg_catalog.pg_class AS class ON class.oid = index.indexrelid
      JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
      WHERE namespace.nspname = ${schema} AND index.indisvalid`)
    const names = new Set(whole.map(({ name }) => name))
    this.#built = filterBuilt(this.#catalog, (index) => names.has(getIndexName(index)))
    const { views } = this.#catalog
    const progress = views.size === 0 ? new Map() : await readProgress(database, schema)
    this.#filled = new Set(
      [...views.values()]
        .filter(({ view }) => progress.get(view.id)?.refreshedAt !== undefined)
        .map(({ view }) => view.number),
    )
    this.#setFieldColumns(await readFieldColumns(database, schema))
    this.#hasExpired = await hasExpiredTable(database, schema)
    this.#hasResealed = await hasResealedTable(database, schema)
    if (this.#listener === undefined) return
    const filled = [...views.values()].filter(({ view }) => this.isFilled(view))
    if (filled.length > 0)
      await distrustOtherMeanings(
        database,
        schema,
        filled.map(({ view }) => view),
      )
    this.waiting.open(this.#catalog)
  }

  async apply(tx: Queryable, schema: string, { entries, step }: EntryRun): Promise<() => void> {
    let catalog = this.#catalog
    const built = new Set<number>()
    const hasIndexesLater = this.#hasIndexesLater
    const fieldColumns = new Map<string, StoredColumns>()
    const written = this.#written
    let records: AppliedEntry[] = []
    let reseals: AppliedEntry[] = []
    // They have no table in common.
    const send = async (): Promise<Sent> => {
      const sent = await sendRecords(tx, { schema, catalog, entries: records, written })
      if (reseals.length > 0) await applyReseals(tx, { schema, catalog, entries: reseals })
      records = []
      reseals = []
      return sent
    }
    const flush = async () => {
      const { done } = await send()
      await done
    }
    for (const entry of entries) {
      if (entry.header.type === 'record') {
        records.push(entry)
        continue
      }
      if (entry.header.type === 'reseal') {
        reseals.push(entry)
        continue
      }
      await flush()
      const change = { schema, catalog, entry }
      const { type } = entry.header
      if (type === 'view_refresh') await noteRefresh(tx, schema, change)
      else if (type === 'expire') await applyExpire(tx, change)
      else if (type === 'erase') await applyErase(tx, change)
      else catalog = await applyDefinition(tx, { ...change, built, hasIndexesLater, fieldColumns })
    }
    const listener = this.#listener
    const live = listener && step && { at: step.at, live: listener.live }
    const decision = live && this.waiting.decide({ catalog, entries, catchUp: step.catchUp })
    const isLeft = decision
      ? await applyWithLiveViews(tx, { schema, catalog, entries, send, decision, ...live })
      : await flush()
    return () => {
      if (decision !== undefined) this.waiting.noteCommit(decision, catalog)
      const before = this.#catalog
      if (catalog !== before) {
        this.#catalog = catalog
        // A note of a column, made meanwhile, is newer.
        for (const [table, columns] of fieldColumns)
          fieldColumns.set(table, new Map([...columns, ...(this.#fieldColumns.get(table) ?? [])]))
        this.#setFieldColumns(new Map([...this.#fieldColumns, ...fieldColumns]))
        this.#built = filterBuilt(
          catalog,
          (index) => built.has(index.number) || this.isBuilt(index),
        )
        listener?.onChange()
      }
      const types = new Set(entries.map(({ header }) => header.type))
      if (types.has('expire')) this.#hasExpired = true
      if (this.#catalog.resealings.size > 0) this.#hasResealed = true
      const isRefreshed = types.has('view_refresh') || types.has('erase')
      const isOfViews = catalog !== before || isLeft === true || isRefreshed
      if (isOfViews && catalog.views.size > 0) listener?.onViews()
      listener?.onApplied()
      if (this.watchers.count > 0) this.watchers.wake(listTouched(entries))
    }
  }
}

/** The ids of collections with new versions, and of what was defined anew. */
function listTouched(entries: readonly AppliedEntry[]): ReadonlySet<string> {
  return new Set(entries.map(({ header }) => String(header.collection ?? header.id)))
}

function filterBuilt(catalog: Catalog, isBuilt: (index: IndexDefinition) => boolean): Set<number> {
  return new Set([...catalog.indexes.values()].filter(isBuilt).map(({ number }) => number))
}
