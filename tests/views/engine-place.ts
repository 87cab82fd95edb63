import type { AppliedEntry } from '../../packages/server/src/chain/applier.ts'
import type { Queryable } from '../../packages/server/src/database/database.ts'
import { sql } from '../../packages/server/src/database/sql.ts'
import type { TestDatabase } from '../../packages/server/src/database/testing.ts'
import {
  buildCatalog,
  type Catalog,
  emptyCatalog,
} from '../../packages/server/src/model/catalog.ts'
import type {
  CollectionDefinition,
  IndexDefinition,
} from '../../packages/server/src/model/definitions.ts'
import {
  buildCollectionTables,
  sendRecords,
} from '../../packages/server/src/projections/project-records.ts'
import type { CompiledStatement } from '../../packages/server/src/query/sql-text.ts'
import type { ViewPlace } from '../../packages/server/src/views/view-program.ts'

export type Write = {
  readonly collection: string
  readonly key: string
  /** The JSON text of the record; undefined deletes it. */
  readonly body: string | undefined
}

/**
 * A schema with collections, to which records are written by the projection that the service has. Beside their tables
 * are views of their names with the columns `leaf` and `data` of the records that are live.
 */
export type EnginePlace = {
  readonly schema: string
  /** Entries so far. */
  readonly size: () => number
  /** Applies the writes as one block. */
  readonly write: (tx: Queryable, writes: readonly Write[]) => Promise<void>
  readonly view: (number: number) => ViewPlace
  readonly transaction: (work: (tx: Queryable) => Promise<void>) => Promise<void>
}

type PlaceOptions = {
  readonly names: readonly string[]
  /** The unique fields: each value belongs to one record, the newest. */
  readonly unique?: readonly { readonly collection: string; readonly field: string }[]
}

export async function runStatements(
  tx: Queryable,
  statements: readonly CompiledStatement[],
): Promise<void> {
  for (const { text, values } of statements) await tx.execute(sql.compiled(text, values))
}

export async function makeEnginePlace(
  { database }: TestDatabase,
  schema: string,
  options: PlaceOptions,
): Promise<EnginePlace> {
  const catalog = makeCatalog(options)
  let size = 0
  let height = 0
  await database.transaction(async (tx) => {
    await tx.execute(sql`CREATE SCHEMA ${sql.id(schema)}`)
    await tx.execute(sql`CREATE TABLE ${sql.id(schema, 'collection_stats')} (
      collection text PRIMARY KEY, documents int8 NOT NULL, bytes int8 NOT NULL, versions int8 NOT NULL)`)
    for (const collection of catalog.collections.values())
      for (const statement of buildCollectionTables(schema, collection)) await tx.execute(statement)
    for (const { name, table } of catalog.byName.values())
      await tx.execute(sql`CREATE VIEW ${sql.id(schema, name)} AS SELECT leaf, data
        FROM ${sql.id(schema, table)} WHERE superseded_by IS NULL AND NOT deleted`)
  })
  const write = async (tx: Queryable, writes: readonly Write[]) => {
    height += 1
    const entries = writes.map(({ collection, key, body }, sequence): AppliedEntry => {
      const deleted = body === undefined ? { deleted: true } : {}
      const leafIndex = size + sequence
      const header = { type: 'record', collection, key, ...deleted }
      return { header, body: body ?? '{}', height, sequence, leafIndex, time: 0 }
    })
    size += writes.length
    const sent = await sendRecords(tx, { schema, catalog, entries })
    await sent.done
  }
  return {
    schema,
    size: () => size,
    write,
    view: (number) => ({
      schema,
      number,
      resolve: (model) => {
        const collection = catalog.byName.get(model.split('::').at(-1) ?? '')
        return collection === undefined ? undefined : { schema, table: collection.table }
      },
    }),
    transaction: (work) => database.transaction(work),
  }
}

function makeCatalog({ names, unique }: PlaceOptions): Catalog {
  const created = { created_at: '', updated_at: '' }
  const collections = names.map((name, at): readonly [string, CollectionDefinition] => [
    name,
    {
      id: name,
      number: at + 1,
      name,
      namespace: 'app',
      primary_column: 'id',
      sort_column: null,
      collection_type: 'document',
      access_policy: {},
      schema_definition: null,
      ...created,
    },
  ])
  const indexes = (unique ?? []).map(
    ({ collection, field }, at): readonly [string, IndexDefinition] => [
      `unique ${at}`,
      {
        id: `unique ${at}`,
        number: names.length + at + 1,
        name: `unique ${at}`,
        collection,
        fields: [field],
        index_type: 'btree',
        unique: true,
        ...created,
      },
    ],
  )
  return buildCatalog({
    ...emptyCatalog,
    collections: new Map(collections),
    indexes: new Map(indexes),
  })
}
