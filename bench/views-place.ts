import {
  type AppliedBlock,
  type AppliedEntry,
  toAppliedBlock,
} from '@tollbase/server/chain/applier'
import { buildChainTables } from '@tollbase/server/chain/tables'
import type { Queryable } from '@tollbase/server/database/database'
import { sql } from '@tollbase/server/database/sql'
import type { CollectionDefinition } from '@tollbase/server/model/definitions'
import { DataProjection } from '@tollbase/server/projections/data-projection'
import { sendRecords } from '@tollbase/server/projections/project-records'
import { compileIndex } from '@tollbase/server/query/index-key'
import { parseSql } from '@tollbase/server/query/sql/parse-sql'
import type { CompiledStatement } from '@tollbase/server/query/sql-text'
import { planView, type ViewPlace, type ViewProgram } from '@tollbase/server/views/view-program'
import { app, type Place } from './place.ts'

export const schema = 'app_views'
const groups = 1_000
export const itemsPerPlace = 10

/** Collections whose tables are filled as the service's applier does, and views beside them. */
export type ViewsPlace = {
  /** The number of entries so far, of all collections. */
  readonly size: () => number
  /** Applies a block of new items, or of new versions of places, as the applier does. */
  readonly write: (tx: Queryable, block: Block) => Promise<void>
  /** Makes the same block for an applier loop that applies it itself. */
  readonly next: (block: Block) => AppliedBlock
  /** Applies definitions. */
  readonly define: (definitions: readonly Definition[]) => Promise<void>
  /** Sets the chain's watermark to the position of the tables. */
  readonly mark: () => Promise<void>
  readonly addView: (text: string) => Promise<KeptView>
  readonly transaction: (work: (tx: Queryable) => Promise<void>) => Promise<void>
}

export type Block = { readonly collection: Name; readonly count: number }
/** `body` undefined deletes. */
export type Definition = {
  readonly kind: string
  readonly id: string
  readonly body: object | undefined
}
export type KeptView = { readonly program: ViewProgram; readonly place: ViewPlace; at: number }
type Name = 'items' | 'few' | 'places'

const names = ['items', 'few', 'places'] as const

/** Fills `items` with that many records, `few` with fewer, and `places` with one for each ten items. */
export async function openViewsPlace(
  { database }: Place,
  records: { readonly items: number; readonly few: number },
): Promise<ViewsPlace> {
  const data = new DataProjection()
  const places = Math.ceil(records.items / itemsPerPlace)
  let size = records.items
  let height = 1
  let views = 0
  const transaction = (work: (tx: Queryable) => Promise<void>) =>
    database.transaction(work, { statementTimeoutMs: 0 })
  const define = async (definitions: readonly Definition[]) => {
    const entries = definitions.map(({ kind, id, body }, sequence): AppliedEntry => {
      const header = { type: 'definition', kind, id }
      const text = body === undefined ? '' : JSON.stringify(body)
      return { header, body: text, height, sequence, leafIndex: size, time: 0 }
    })
    await transaction(async (tx) => (await data.apply(tx, schema, { entries }))())
  }
  await transaction(async (tx) => {
    await tx.execute(sql`CREATE SCHEMA ${sql.id(schema)}`)
    for (const statement of [...buildChainTables(schema), ...data.tables(schema)])
      await tx.execute(statement)
  })
  await define(names.map(collectionNamed))
  await transaction(async (tx) => {
    await fill(tx, { table: 'c_1', count: records.items, places })
    await fill(tx, { table: 'c_2', count: records.few, places })
    await fill(tx, { table: 'c_3', count: places, places })
  })
  await vacuum(database)
  const resolve = (model: string) => {
    const collection = data.catalog.byName.get(model.split('::').at(-1) ?? '')
    return collection === undefined ? undefined : { schema, table: collection.table }
  }
  const next = ({ collection, count }: Block): AppliedBlock => {
    height += 1
    const firstLeaf = size
    size += count
    const entries = Array.from({ length: count }, (_, sequence) => {
      const leaf = firstLeaf + sequence
      const at = collection === 'places' ? (leaf * 7919) % places : leaf
      const header = { type: 'record', collection, key: `k${at}` }
      return { header, body: makeBody(at, places) }
    })
    return toAppliedBlock({ height, time: 0, firstLeaf, groupStarts: [0], entries })
  }
  return {
    size: () => size,
    transaction,
    next,
    define,
    mark: () =>
      transaction(async (tx) => {
        await tx.execute(
          sql`UPDATE ${sql.id(schema, 'watermark')} SET height = ${height}, leaf = ${size}`,
        )
      }),
    write: async (tx, block) => {
      const { entries } = next(block)
      const sent = await sendRecords(tx, { schema, catalog: data.catalog, entries })
      await sent.done
    },
    addView: async (text) => {
      views += 1
      const program = planView(await parseSql(text, { now: 0 }))
      const place = { schema, number: views, resolve }
      await transaction(async (tx) => {
        await runStatements(tx, [...program.tables(place), ...joinIndexes(program, place)])
        await runStatements(
          tx,
          program.fill(place, () => size),
        )
      })
      await vacuum(database)
      return { program, place, at: size }
    },
  }
}

export async function runStatements(
  tx: Queryable,
  statements: readonly CompiledStatement[],
): Promise<void> {
  for (const { text, values } of statements) await tx.execute(sql.compiled(text, values))
}

function joinIndexes(program: ViewProgram, place: ViewPlace): readonly CompiledStatement[] {
  return program.joinFields.flatMap(({ model, path }, at) => {
    const source = place.resolve(model)
    const name = `i_${place.number}_${at}`
    return source === undefined
      ? []
      : [compileIndex({ ...source, name, paths: [path], method: 'btree' })]
  })
}

/** Makes a record of about 450 bytes. */
function makeBody(at: number, places: number): string {
  return JSON.stringify({
    id: `k${at}`,
    group: `g${at % groups}`,
    place: `p${at % places}`,
    amount: at % 977,
    text: 'x'.repeat(360),
  })
}

/** Inserts the same records, made by the database. */
async function fill(
  tx: Queryable,
  {
    table,
    count,
    places,
  }: { readonly table: string; readonly count: number; readonly places: number },
): Promise<void> {
  await tx.execute(sql`INSERT INTO ${sql.id(schema, table)} (leaf, height, sequence, key, deleted, data, body)
    SELECT at, 1, 0, 'k' || at, FALSE, body::jsonb, body FROM (SELECT at, format(
      '{"id":"k%s","group":"g%s","place":"p%s","amount":%s,"text":"%s"}',
      at, at % ${groups}::int8, at % ${places}::int8, at % 977, repeat('x', 360)) AS body
      FROM generate_series(0::int8, ${count}::int8 - 1) AS at) AS made`)
}

async function vacuum(database: Place['database']): Promise<void> {
  await database.useDedicatedSession((session) => session.execute(sql`VACUUM ANALYZE`), {
    statementTimeoutMs: 0,
    lockTimeoutMs: 0,
  })
}

function collectionNamed(name: Name, at: number): Definition {
  const body: CollectionDefinition = {
    id: name,
    number: at + 1,
    name,
    namespace: app,
    primary_column: 'id',
    sort_column: null,
    collection_type: 'document',
    access_policy: {},
    schema_definition: null,
    created_at: '',
    updated_at: '',
  }
  return { kind: 'collection', id: name, body }
}
