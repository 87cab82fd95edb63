import type { AppliedEntry } from '../../chain/applier.ts'
import type { Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import type { Projection } from '../projection.ts'
import {
  type Catalog,
  type Definitions,
  emptyCatalog,
  withLookups,
  withLookupsOf,
} from './catalog.ts'
import type {
  CollectionDefinition,
  IndexDefinition,
  MigrationDefinition,
  PricingDefinition,
  RelationDefinition,
} from './definitions.ts'
import { createIndex, indexNameOf } from './index-ddl.ts'
import { collectionTables, projectRecords, supersedeAll } from './record-projection.ts'
import { Watchers } from './watchers.ts'

/** The tables of one application's data: its definitions, and a table per collection. */
export class DataProjection implements Projection {
  readonly types = ['definition', 'record'] as const
  /** Who waits for versions that the tables do not show yet. */
  readonly watchers = new Watchers()
  #catalog: Catalog = emptyCatalog
  /** Numbers of the indexes that are whole. */
  #built: ReadonlySet<number> = new Set()
  readonly #onChange: ((before: Catalog, after: Catalog) => void) | undefined

  /** `onChange` hears of every change of definitions once it is in force. */
  constructor(onChange?: (before: Catalog, after: Catalog) => void) {
    this.#onChange = onChange
  }

  get catalog(): Catalog {
    return this.#catalog
  }

  /** Whether the index serves reads; otherwise it is being built beside the writes, or waits for that. */
  isBuilt(index: { readonly number: number }): boolean {
    return this.#built.has(index.number)
  }

  /** An index was built beside the lane, or found broken. */
  setBuilt(index: { readonly number: number }, isBuilt: boolean): void {
    const built = new Set(this.#built)
    if (isBuilt) built.add(index.number)
    else built.delete(index.number)
    this.#built = built
  }

  /** The indexes that are not built. */
  unbuilt(): IndexDefinition[] {
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
    return ['definition', 'collection_stats', ...tables]
  }

  async load(database: Queryable, schema: string): Promise<void> {
    const rows = await database.query<{ kind: string; id: string; body: string; leaf: bigint }>(
      sql`SELECT kind, id, body, leaf FROM ${sql.id(schema, 'definition')} ORDER BY kind, id`,
    )
    const draft = draftOf(emptyCatalog)
    for (const row of rows)
      setDefinition(draft, row.kind, { id: row.id, body: row.body, leaf: Number(row.leaf) })
    // The rows of a deleted collection's indexes stay.
    for (const [id, index] of draft.indexes)
      if (!draft.collections.has(index.collection)) draft.indexes.delete(id)
    this.#catalog = withLookups(draft)
    const whole = await database.query<{ name: string }>(sql`
      SELECT class.relname::text AS name FROM pg_catalog.pg_index AS index
      JOIN pg_catalog.pg_class AS class ON class.oid = index.indexrelid
      JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
      WHERE namespace.nspname = ${schema} AND index.indisvalid`)
    const names = new Set(whole.map(({ name }) => name))
    this.#built = builtIn(this.#catalog, (index) => names.has(indexNameOf(index)))
  }

  async apply(
    tx: Queryable,
    schema: string,
    entries: readonly AppliedEntry[],
  ): Promise<() => void> {
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
      catalog = await applyDefinition(tx, { schema, catalog, entry, built })
    }
    await flush()
    return () => {
      if (catalog !== this.#catalog) {
        const before = this.#catalog
        this.#catalog = catalog
        this.#built = builtIn(catalog, (index) => built.has(index.number) || this.isBuilt(index))
        this.#onChange?.(before, catalog)
      }
      if (this.watchers.count > 0) this.watchers.wake(touched(entries))
    }
  }
}

/** The ids of collections with new versions, and of what was defined anew. */
function touched(entries: readonly AppliedEntry[]): ReadonlySet<string> {
  return new Set(entries.map(({ header }) => String(header.collection ?? header.id)))
}

function builtIn(
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
  await dropWhatIsReplaced(tx, { schema, catalog, kind, id, deleted: entry.body === '' })
  if (entry.body === '') {
    await tx.execute(sql`DELETE FROM ${table} WHERE kind = ${kind} AND id = ${id}`)
    await tx.execute(sql`
      INSERT INTO ${table} (kind, id, body, leaf) VALUES (${lastDeletion}, '', 'null', ${entry.leafIndex})
      ON CONFLICT (kind, id) DO UPDATE SET leaf = excluded.leaf`)
    return catalogWith(catalog, kind, { id, body: undefined, leaf: entry.leafIndex })
  }
  await tx.execute(
    sql`INSERT INTO ${table} (kind, id, body, leaf) VALUES (${kind}, ${id}, ${entry.body}, ${entry.leafIndex})
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, leaf = excluded.leaf`,
  )
  const next = catalogWith(catalog, kind, { id, body: entry.body, leaf: entry.leafIndex })
  await makeWhatIsNew(tx, { schema, before: catalog, after: next, kind, id, built })
  return next
}

async function dropWhatIsReplaced(
  tx: Queryable,
  change: { schema: string; catalog: Catalog; kind: string; id: string; deleted: boolean },
): Promise<void> {
  const { schema, catalog, kind, id } = change
  const index = kind === 'index' ? catalog.indexes.get(id) : undefined
  const indexed = index && catalog.byId.get(index.collection)
  if (index !== undefined && indexed !== undefined) {
    await dropping(tx, { schema, table: indexed.table }, dropIndex(schema, index))
  }
  const collection =
    kind === 'collection' && change.deleted ? catalog.collections.get(id) : undefined
  if (collection !== undefined) {
    const table = `c_${collection.number}`
    await dropping(tx, { schema, table }, sql`DROP TABLE ${sql.id(schema, table)}`)
    await tx.execute(
      sql`DELETE FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${id}`,
    )
  }
}

function dropIndex(schema: string, index: { readonly number: number }): SqlStatement {
  return sql`DROP INDEX IF EXISTS ${sql.id(schema, indexNameOf(index))}`
}

/** Longer than this the lane does not wait for readers to leave a table: others would wait behind it. It tries again. */
const dropWaitMs = 3_000

/** Drops something of a table, ending first what builds an index on it, which may take long. */
async function dropping(
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
  await tx.query(sql`SELECT set_config('lock_timeout', ${String(dropWaitMs)}, true)`)
  await tx.execute(drop)
  await tx.query(sql`SELECT set_config('lock_timeout', '0', true)`)
}

type Making = {
  readonly schema: string
  readonly before: Catalog
  readonly after: Catalog
  readonly kind: string
  readonly id: string
  readonly built: Set<number>
}

async function makeWhatIsNew(tx: Queryable, change: Making): Promise<void> {
  const { schema, before, after, kind, id, built } = change
  const collection = kind === 'collection' ? after.collections.get(id) : undefined
  if (collection !== undefined && !before.collections.has(id)) {
    for (const statement of collectionTables(schema, collection)) await tx.execute(statement)
  }
  const index = kind === 'index' ? after.indexes.get(id) : undefined
  const indexed = index && after.byId.get(index.collection)
  if (index === undefined || indexed === undefined) return
  // A number can come again after the last index was deleted; what a build that was broken off left is not this one.
  await tx.execute(dropIndex(schema, index))
  if (!index.unique && !(await isSmall(tx, schema, indexed.id))) return
  await tx.execute(createIndex({ schema, collection: indexed }, index))
  built.add(index.number)
  if (index.unique) await supersedeAll(tx, { schema, collection: indexed, fields: index.fields })
}

/** Of what is smaller an index is built at once; of all else beside the writes, which must not wait for it. */
const atOnce = { versions: 2_000, bytes: 4 * 1024 * 1024 }

async function isSmall(tx: Queryable, schema: string, collection: string): Promise<boolean> {
  const large = await tx.query(sql`
    SELECT collection FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${collection}
      AND (versions > ${atOnce.versions}::int8 OR bytes > ${atOnce.bytes}::int8)`)
  return large.length === 0
}

type OneDefinition = { id: string; body: string | undefined; leaf: number }

/** The catalog with one definition set, or removed where there is no body. */
function catalogWith(before: Catalog, kind: string, definition: OneDefinition): Catalog {
  const { id } = definition
  const draft = draftOf(before)
  setDefinition(draft, kind, definition)
  const index = kind === 'index' ? (draft.indexes.get(id) ?? before.indexes.get(id)) : undefined
  return withLookupsOf(draft, before, kind === 'collection' ? id : index?.collection)
}

/** Definitions while they are being changed. */
type Draft = {
  -readonly [K in keyof Definitions]: Definitions[K] extends ReadonlyMap<infer I, infer T>
    ? Map<I, T>
    : Definitions[K]
}

function draftOf(definitions: Definitions): Draft {
  return {
    collections: new Map(definitions.collections),
    indexes: new Map(definitions.indexes),
    relations: new Map(definitions.relations),
    migrations: new Map(definitions.migrations),
    pricing: definitions.pricing,
    nextNumber: definitions.nextNumber,
    version: definitions.version,
  }
}

function setDefinition(draft: Draft, kind: string, { id, body, leaf }: OneDefinition): void {
  draft.version = Math.max(draft.version, leaf + 1)
  const parsed: unknown = body === undefined ? undefined : JSON.parse(body)
  if (kind === 'collection') {
    setNumbered(draft, draft.collections, { id, value: parsed as CollectionDefinition | undefined })
    if (parsed === undefined) forgetIndexesOf(draft, id)
  } else if (kind === 'index') {
    setNumbered(draft, draft.indexes, { id, value: parsed as IndexDefinition | undefined })
  } else if (kind === 'relation') {
    set(draft.relations, id, parsed as RelationDefinition | undefined)
  } else if (kind === 'migration') {
    set(draft.migrations, id, parsed as MigrationDefinition | undefined)
  } else if (kind === 'pricing') {
    draft.pricing = (parsed as PricingDefinition | undefined) ?? { rules: [] }
  }
}

function set<T>(map: Map<string, T>, id: string, value: T | undefined): void {
  if (value === undefined) map.delete(id)
  else map.set(id, value)
}

function setNumbered<T extends { readonly number: number }>(
  draft: Draft,
  map: Map<string, T>,
  { id, value }: { id: string; value: T | undefined },
): void {
  set(map, id, value)
  draft.nextNumber = Math.max(draft.nextNumber, (value?.number ?? 0) + 1)
}

function forgetIndexesOf({ indexes }: Draft, collection: string): void {
  for (const [id, index] of indexes) if (index.collection === collection) indexes.delete(id)
}
