import type { AppliedEntry } from '../../chain/applier.ts'
import type { Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { parseFieldPath } from '../../query/field-path.ts'
import { createIndexStatement } from '../../query/index-key.ts'
import type { Projection } from '../projection.ts'
import { type Catalog, emptyCatalog, withLookups } from './catalog.ts'
import type { CollectionDefinition, IndexDefinition, PricingDefinition } from './definitions.ts'
import { collectionTables, projectRecords, supersedeAll } from './record-projection.ts'

/** The tables of one application's data: its definitions, and a table per collection. */
export class DataProjection implements Projection {
  readonly types = ['definition', 'record'] as const
  #catalog: Catalog = emptyCatalog
  readonly #onChange: ((before: Catalog, after: Catalog) => void) | undefined

  /** `onChange` hears of every change of definitions once it is in force. */
  constructor(onChange?: (before: Catalog, after: Catalog) => void) {
    this.#onChange = onChange
  }

  get catalog(): Catalog {
    return this.#catalog
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
    let catalog = emptyCatalog
    for (const row of rows)
      catalog = withDefinition(catalog, row.kind, {
        id: row.id,
        body: row.body,
        leaf: Number(row.leaf),
      })
    this.#catalog = withLookups(catalog)
  }

  async apply(
    tx: Queryable,
    schema: string,
    entries: readonly AppliedEntry[],
  ): Promise<() => void> {
    let catalog = this.#catalog
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
      catalog = await applyDefinition(tx, { schema, catalog, entry })
    }
    await flush()
    return () => {
      if (catalog === this.#catalog) return
      const before = this.#catalog
      this.#catalog = catalog
      this.#onChange?.(before, catalog)
    }
  }
}

/** A row that keeps the catalog's version from falling when the newest definition is gone. */
const lastDeletion = 'last deletion'

async function applyDefinition(
  tx: Queryable,
  change: { schema: string; catalog: Catalog; entry: AppliedEntry },
): Promise<Catalog> {
  const { schema, catalog, entry } = change
  const kind = String(entry.header.kind)
  const id = String(entry.header.id)
  const table = sql.id(schema, 'definition')
  await dropWhatIsReplaced(tx, { schema, catalog, kind, id, deleted: entry.body === '' })
  if (entry.body === '') {
    await tx.execute(sql`DELETE FROM ${table} WHERE kind = ${kind} AND id = ${id}`)
    await tx.execute(sql`
      INSERT INTO ${table} (kind, id, body, leaf) VALUES (${lastDeletion}, '', 'null', ${entry.leafIndex})
      ON CONFLICT (kind, id) DO UPDATE SET leaf = excluded.leaf`)
    return withLookups(
      withDefinition(catalog, kind, { id, body: undefined, leaf: entry.leafIndex }),
    )
  }
  await tx.execute(
    sql`INSERT INTO ${table} (kind, id, body, leaf) VALUES (${kind}, ${id}, ${entry.body}, ${entry.leafIndex})
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, leaf = excluded.leaf`,
  )
  const next = withLookups(
    withDefinition(catalog, kind, { id, body: entry.body, leaf: entry.leafIndex }),
  )
  await makeWhatIsNew(tx, { schema, before: catalog, after: next, kind, id })
  return next
}

async function dropWhatIsReplaced(
  tx: Queryable,
  change: { schema: string; catalog: Catalog; kind: string; id: string; deleted: boolean },
): Promise<void> {
  const { schema, catalog, kind, id } = change
  const index = kind === 'index' ? catalog.indexes.get(id) : undefined
  if (index !== undefined) await tx.execute(sql`DROP INDEX ${sql.id(schema, `i_${index.number}`)}`)
  const collection =
    kind === 'collection' && change.deleted ? catalog.collections.get(id) : undefined
  if (collection !== undefined) {
    await tx.execute(sql`DROP TABLE ${sql.id(schema, `c_${collection.number}`)}`)
    await tx.execute(
      sql`DELETE FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${id}`,
    )
  }
}

async function makeWhatIsNew(
  tx: Queryable,
  change: { schema: string; before: Catalog; after: Catalog; kind: string; id: string },
): Promise<void> {
  const { schema, before, after, kind, id } = change
  const collection = kind === 'collection' ? after.collections.get(id) : undefined
  if (collection !== undefined && !before.collections.has(id)) {
    for (const statement of collectionTables(schema, collection)) await tx.execute(statement)
  }
  const index = kind === 'index' ? after.indexes.get(id) : undefined
  const indexed = index && after.byId.get(index.collection)
  if (index === undefined || indexed === undefined) return
  const paths = index.fields.map((field) => parseFieldPath(field, ''))
  const isHash = index.index_type.toLowerCase() === 'hash' && paths.length === 1
  const { text, values } = createIndexStatement({
    schema,
    table: indexed.table,
    name: `i_${index.number}`,
    paths,
    kind: isHash ? 'hash' : 'btree',
  })
  await tx.execute(sql.compiled(text, values))
  if (index.unique) await supersedeAll(tx, { schema, collection: indexed, fields: index.fields })
}

/** The catalog with one definition set, or removed where there is no body. Lookups are made by the caller. */
function withDefinition(
  before: Catalog,
  kind: string,
  definition: { id: string; body: string | undefined; leaf: number },
): Catalog {
  const { id, body, leaf } = definition
  const catalog = { ...before, version: Math.max(before.version, leaf + 1) }
  if (kind === lastDeletion) return catalog
  const parsed: unknown = body === undefined ? undefined : JSON.parse(body)
  if (kind === 'collection') {
    const next = parsed as CollectionDefinition | undefined
    const indexes = next ? catalog.indexes : withoutIndexesOf(catalog, id)
    return {
      ...catalog,
      collections: replaced(catalog.collections, id, next),
      indexes,
      nextNumber: numberAfter(catalog, next),
    }
  }
  if (kind === 'index') {
    const next = parsed as IndexDefinition | undefined
    return {
      ...catalog,
      indexes: replaced(catalog.indexes, id, next),
      nextNumber: numberAfter(catalog, next),
    }
  }
  return { ...catalog, pricing: (parsed as PricingDefinition | undefined) ?? { rules: [] } }
}

function replaced<T>(
  map: ReadonlyMap<string, T>,
  id: string,
  value: T | undefined,
): ReadonlyMap<string, T> {
  const next = new Map(map)
  if (value === undefined) next.delete(id)
  else next.set(id, value)
  return next
}

function withoutIndexesOf(
  catalog: Catalog,
  collection: string,
): ReadonlyMap<string, IndexDefinition> {
  return new Map([...catalog.indexes].filter(([, index]) => index.collection !== collection))
}

function numberAfter(catalog: Catalog, numbered: { number: number } | undefined): number {
  return Math.max(catalog.nextNumber, (numbered?.number ?? 0) + 1)
}
