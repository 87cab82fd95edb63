import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import { buildCatalog, type Catalog, emptyCatalog, findReadableById } from '../model/catalog.ts'
import { makeDraft, setDefinition, updateCatalog } from '../model/catalog-draft.ts'
import type { DataSetDefinition, IndexDefinition } from '../model/definitions.ts'
import { planStoredView } from '../model/view-plan.ts'
import {
  buildDataSetTable,
  fillDataSet,
  getDataSetTableName,
  splitDataSet,
} from './data-set-table.ts'
import { buildCreateIndex, getIndexName } from './index-ddl.ts'
import type { EntryRun, Projection } from './projection.ts'
import { buildCollectionTables, projectRecords, supersedeAll } from './record-projection.ts'
import {
  applyWithLiveViews,
  distrustViews,
  dropView,
  endViewWork,
  type LiveViews,
  listViewTables,
  makeView,
  noteRefresh,
} from './view-projection.ts'
import { readProgress, viewStateTable } from './view-state.ts'
import { WaitingViews } from './waiting-views.ts'
import { Watchers } from './watchers.ts'

/** The service's callbacks for changes of the tables; replays of the log have none. */
export type DataListener = {
  /** Definitions have changed, and are in force. */
  readonly onChange: () => void
  /** There may be views to fill. */
  readonly onViews: () => void
  readonly live: LiveViews
  /** The ticks of a clock that never goes back. */
  readonly ticks: () => number
}

/** The tables of one application's data: its definitions, and a table per collection. */
export class DataProjection implements Projection {
  readonly types = ['definition', 'record', 'view_refresh'] as const
  /** The requests that wait for versions that the tables do not show yet. */
  readonly watchers = new Watchers()
  #catalog: Catalog = emptyCatalog
  /** Numbers of the indexes that are whole. */
  #built: ReadonlySet<number> = new Set()
  /** Numbers of the views that have been filled once, so that they can be read. */
  #filled: ReadonlySet<number> = new Set()
  /** Live views that lack what the tables have. */
  readonly waiting: WaitingViews
  readonly #listener: DataListener | undefined

  constructor(listener?: DataListener) {
    this.#listener = listener
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
    const built = new Set(this.#built)
    if (isBuilt) built.add(index.number)
    else built.delete(index.number)
    this.#built = built
  }

  /** Returns true if a view has rows to read. */
  isFilled(view: { readonly number: number }): boolean {
    return this.#filled.has(view.number)
  }

  setFilled(view: { readonly number: number }): void {
    this.#filled = new Set([...this.#filled, view.number])
  }

  catchUpAt(): number | undefined {
    return this.waiting.catchUpAt()
  }

  /** The indexes that are not built. */
  listUnbuilt(): IndexDefinition[] {
    return [...this.#catalog.indexes.values()].filter((index) => !this.isBuilt(index))
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
    const tables = [...this.#catalog.collections.values()].map(({ number }) => `c_${number}`)
    const sets = [...this.#catalog.dataSets.values()].map(getDataSetTableName)
    return ['definition', 'collection_stats', ...tables, ...sets]
  }

  derivedTableNames(): string[] {
    const { views } = this.#catalog
    return views.size === 0 ? [] : [viewStateTable, ...[...views.values()].flatMap(listViewTables)]
  }

  async load(database: Queryable, schema: string): Promise<void> {
    const rows = await database.query<{ kind: string; id: string; body: string; leaf: bigint }>(
      sql`SELECT kind, id, body, leaf FROM ${sql.id(schema, 'definition')} ORDER BY kind, id`,
    )
    const draft = makeDraft(emptyCatalog)
    for (const { kind, id, body, leaf } of rows) {
      const planned = kind === 'view' ? await planStoredView(JSON.parse(body)) : undefined
      setDefinition(draft, kind, { id, body, leaf: Number(leaf), planned })
    }
    // The rows of a deleted collection's indexes stay.
    for (const [id, index] of draft.indexes)
      if (!draft.collections.has(index.collection) && !draft.views.has(index.collection))
        draft.indexes.delete(id)
    this.#catalog = buildCatalog(draft)
    const whole = await database.query<{ name: string }>(sql`
      SELECT class.relname::text AS name FROM pg_catalog.pg_index AS index
      JOIN pg_catalog.pg_class AS class ON class.oid = index.indexrelid
      JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
      WHERE namespace.nspname = ${schema} AND index.indisvalid`)
    const names = new Set(whole.map(({ name }) => name))
    this.#built = filterBuilt(this.#catalog, (index) => names.has(getIndexName(index)))
    const progress = draft.views.size === 0 ? new Map() : await readProgress(database, schema)
    this.#filled = new Set(
      [...draft.views.values()]
        .filter(({ view }) => progress.get(view.id)?.refreshedAt !== undefined)
        .map(({ view }) => view.number),
    )
    if (this.#listener !== undefined) this.waiting.open(this.#catalog)
  }

  async apply(tx: Queryable, schema: string, { entries, step }: EntryRun): Promise<() => void> {
    let catalog = this.#catalog
    const built = new Set<number>()
    let records: AppliedEntry[] = []
    const flush = async () => {
      if (records.length > 0) await projectRecords(tx, { schema, catalog, entries: records })
      records = []
    }
    for (const entry of entries) {
      if (entry.header.type === 'record') {
        records.push(entry)
        continue
      }
      await flush()
      if (entry.header.type === 'view_refresh') await noteRefresh(tx, schema, { catalog, entry })
      else catalog = await applyDefinition(tx, { schema, catalog, entry, built })
    }
    const listener = this.#listener
    const live = listener && step && { at: step.at, live: listener.live }
    const decision = live && this.waiting.decide({ catalog, entries, catchUp: step.catchUp })
    const isLeft = decision
      ? await applyWithLiveViews(tx, { schema, catalog, entries, apply: flush, decision, ...live })
      : await flush()
    return () => {
      if (decision !== undefined) this.waiting.noteCommit(decision, catalog)
      const before = this.#catalog
      if (catalog !== before) {
        this.#catalog = catalog
        this.#built = filterBuilt(
          catalog,
          (index) => built.has(index.number) || this.isBuilt(index),
        )
        listener?.onChange()
      }
      const isRefreshed = entries.some(({ header }) => header.type === 'view_refresh')
      const isOfViews = catalog !== before || isLeft === true || isRefreshed
      if (isOfViews && catalog.views.size > 0) listener?.onViews()
      if (this.watchers.count > 0) this.watchers.wake(listTouched(entries))
    }
  }
}

/** The ids of collections with new versions, and of what was defined anew. */
function listTouched(entries: readonly AppliedEntry[]): ReadonlySet<string> {
  return new Set(entries.map(({ header }) => String(header.collection ?? header.id)))
}

function filterBuilt(
  catalog: Catalog,
  isBuilt: (index: IndexDefinition) => boolean,
): ReadonlySet<number> {
  return new Set([...catalog.indexes.values()].filter(isBuilt).map(({ number }) => number))
}

/** A row that keeps the catalog's version from falling when the newest definition is gone. */
const lastDeletion = 'last deletion'

/** `built` takes the numbers of the indexes that are made here. */
async function applyDefinition(
  tx: Queryable,
  change: { schema: string; catalog: Catalog; entry: AppliedEntry; built: Set<number> },
): Promise<Catalog> {
  const { schema, catalog, entry, built } = change
  const kind = String(entry.header.kind)
  const id = String(entry.header.id)
  const table = sql.id(schema, 'definition')
  await dropReplaced(tx, { schema, catalog, kind, id, deleted: entry.body === '' })
  if (entry.body === '') {
    await tx.execute(sql`DELETE FROM ${table} WHERE kind = ${kind} AND id = ${id}`)
    await tx.execute(sql`
      INSERT INTO ${table} (kind, id, body, leaf) VALUES (${lastDeletion}, '', 'null', ${entry.leafIndex})
      ON CONFLICT (kind, id) DO UPDATE SET leaf = excluded.leaf`)
    return updateCatalog(catalog, kind, {
      id,
      body: undefined,
      leaf: entry.leafIndex,
      planned: undefined,
    })
  }
  const { body, entries } =
    kind === 'data_set' ? splitDataSet(entry.body) : { body: entry.body, entries: [] }
  await tx.execute(
    sql`INSERT INTO ${table} (kind, id, body, leaf) VALUES (${kind}, ${id}, ${body}, ${entry.leafIndex})
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, leaf = excluded.leaf`,
  )
  const planned = kind === 'view' ? await planStoredView(JSON.parse(body)) : undefined
  const next = updateCatalog(catalog, kind, { id, body, leaf: entry.leafIndex, planned })
  if (planned !== undefined) await makeView(tx, schema, { planned, entry })
  await createNew(tx, { schema, before: catalog, after: next, kind, id, entries, built })
  return next
}

async function dropReplaced(
  tx: Queryable,
  change: { schema: string; catalog: Catalog; kind: string; id: string; deleted: boolean },
): Promise<void> {
  const { schema, catalog, kind, id } = change
  const index = kind === 'index' ? catalog.indexes.get(id) : undefined
  const indexed = index && findReadableById(catalog, index.collection)
  if (index !== undefined && indexed !== undefined) {
    await runDrop(tx, { schema, table: indexed.table }, buildDropIndex(schema, index))
  }
  const planned = kind === 'view' ? catalog.views.get(id) : undefined
  if (planned !== undefined) {
    const drop = (table: string) =>
      runDrop(tx, { schema, table }, sql`DROP TABLE ${sql.id(schema, table)}`)
    await dropView(tx, schema, { planned, drop })
  }
  await dropDataSet(tx, schema, kind === 'data_set' ? catalog.dataSets.get(id) : undefined)
  const collection =
    kind === 'collection' && change.deleted ? catalog.collections.get(id) : undefined
  if (collection !== undefined) {
    const table = `c_${collection.number}`
    await runDrop(tx, { schema, table }, sql`DROP TABLE ${sql.id(schema, table)}`)
    await tx.execute(
      sql`DELETE FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${id}`,
    )
  }
}

/** A new version of a data set has a table of its own. */
async function dropDataSet(
  tx: Queryable,
  schema: string,
  set: DataSetDefinition | undefined,
): Promise<void> {
  if (set === undefined) return
  const table = getDataSetTableName(set)
  await runDrop(tx, { schema, table }, sql`DROP TABLE ${sql.id(schema, table)}`)
}

function buildDropIndex(schema: string, index: { readonly number: number }): SqlStatement {
  return sql`DROP INDEX IF EXISTS ${sql.id(schema, getIndexName(index))}`
}

/**
 * The longest wait of the applier for readers to leave a table, because others would wait behind it. It tries
 * again.
 */
const dropWaitMs = 3_000

/** Drops something of a table after cancelling index builds on it, which may take long. */
async function runDrop(
  tx: Queryable,
  from: { schema: string; table: string },
  drop: SqlStatement,
): Promise<void> {
  await tx.query(sql`
    SELECT pg_catalog.pg_cancel_backend(building.pid) AS ended
    FROM pg_catalog.pg_stat_progress_create_index AS building
    JOIN pg_catalog.pg_class AS class ON class.oid = building.relid
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE building.datname = current_database()
      AND namespace.nspname = ${from.schema} AND class.relname = ${from.table}`)
  await endViewWork(tx, from)
  await tx.query(sql`SELECT set_config('lock_timeout', ${String(dropWaitMs)}, true)`)
  await tx.execute(drop)
  await tx.query(sql`SELECT set_config('lock_timeout', '0', true)`)
}

type Creation = {
  readonly schema: string
  readonly before: Catalog
  readonly after: Catalog
  readonly kind: string
  readonly id: string
  /** The entries of a data set. */
  readonly entries: readonly unknown[]
  readonly built: Set<number>
}

async function createNew(tx: Queryable, change: Creation): Promise<void> {
  const { schema, before, after, kind, id, built } = change
  const collection = kind === 'collection' ? after.collections.get(id) : undefined
  if (collection !== undefined && !before.collections.has(id)) {
    for (const statement of buildCollectionTables(schema, collection)) await tx.execute(statement)
  }
  const set = kind === 'data_set' ? after.dataSets.get(id) : undefined
  if (set !== undefined) {
    const place = { schema, table: getDataSetTableName(set), kind: set.kind }
    await tx.execute(buildDataSetTable(place))
    await fillDataSet(tx, place, change.entries)
  }
  const index = kind === 'index' ? after.indexes.get(id) : undefined
  const indexed = index && findReadableById(after, index.collection)
  if (index === undefined || indexed === undefined) return
  // A number can come again after the last index was deleted; the rest of a build that was broken off is not this
  // index.
  await tx.execute(buildDropIndex(schema, index))
  // The size of a view is not counted, so its indexes are built beside the writes.
  if (!index.unique && (indexed.view !== undefined || !(await isSmall(tx, schema, indexed.id))))
    return
  await tx.execute(buildCreateIndex({ schema, collection: indexed }, index))
  built.add(index.number)
  if (!index.unique) return
  await supersedeAll(tx, { schema, collection: indexed, fields: index.fields })
  await distrustViews(tx, schema, { catalog: after, collection: indexed.id })
}

/**
 * An index of a collection up to this size is built at once; any other beside the writes, which must not wait for
 * it.
 */
const atOnceMax = { versions: 2_000, bytes: 4 * 1024 * 1024 }

async function isSmall(tx: Queryable, schema: string, collection: string): Promise<boolean> {
  const large = await tx.query(sql`
    SELECT collection FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${collection}
      AND (versions > ${atOnceMax.versions}::int8 OR bytes > ${atOnceMax.bytes}::int8)`)
  return large.length === 0
}
