import { awaitTurn } from '../../base/await-turn.ts'
import type { AppliedEntry } from '../../chain/applier.ts'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import {
  buildCatalog,
  type Catalog,
  type Draft,
  emptyCatalog,
  makeDraft,
  rebuildCatalog,
} from '../../model/catalog.ts'
import type { DefinitionKind } from '../../model/definitions.ts'
import type { DefinitionCreation, DefinitionRules } from './definition-rules.ts'
import { isKnownKind, kinds } from './kinds.ts'

/** A row that keeps the catalog's version from falling when the newest definition is gone. */
const lastDeletion = 'last deletion'

/** Definitions that are read at once at most, and bytes of their texts after which no other begins. */
const readAtOnce = { rows: 1_000, bytes: 256 * 1024 }
/** Characters of definitions that are parsed in one turn. */
const charsPerTurn = 64 * 1024

/** Loads the catalog from its table, a page at a time; other work has turns in between. */
export async function loadCatalog(database: Queryable, schema: string): Promise<Catalog> {
  const draft = makeDraft(emptyCatalog)
  const views = await readViewIds(database, schema)
  let chars = 0
  for await (const { kind, id, body, leaf } of readDefinitions(database, schema)) {
    noteLeaf(draft, Number(leaf))
    if (isKnownKind(kind)) await setDefinition(draft, kind, { id, body })
    if (kind === 'index') dropUnreadable(draft, id, views)
    chars += body.length
    if (chars < charsPerTurn) continue
    chars = 0
    await awaitTurn()
  }
  return buildCatalog(draft)
}

/** Views are read after the indexes. */
async function readViewIds(database: Queryable, schema: string): Promise<ReadonlySet<string>> {
  const views = await database.query<{ id: string }>(
    sql`SELECT id FROM ${sql.id(schema, 'definition')} WHERE kind = 'view'`,
  )
  return new Set(views.map(({ id }) => id))
}

/** Drops an index of nothing at once, so that however many there are take no memory: the log may define such indexes. */
function dropUnreadable(draft: Draft, id: string, views: ReadonlySet<string>): void {
  const of = draft.indexes.get(id)?.collection ?? ''
  if (!draft.collections.has(of) && !views.has(of)) draft.indexes.delete(id)
}

type DefinitionRow = {
  readonly kind: string
  readonly id: string
  readonly body: string
  readonly leaf: bigint
}

async function* readDefinitions(
  database: Queryable,
  schema: string,
): AsyncGenerator<DefinitionRow, void> {
  const { rows: rowsMax, bytes } = readAtOnce
  for (let [kind, id] = ['', '']; ; ) {
    const page = await database.query<DefinitionRow & { readonly found: bigint }>(sql`
      SELECT kind, id, body, leaf, found FROM (
        SELECT kind, id, body, leaf, count(*) OVER () AS found,
          sum(octet_length(body)) OVER (ORDER BY kind, id) - octet_length(body) AS before
        FROM (
          SELECT kind, id, body, leaf FROM ${sql.id(schema, 'definition')}
          WHERE (kind, id) > (${kind}, ${id}) ORDER BY kind, id LIMIT ${rowsMax}::int8) AS next
      ) AS page WHERE before < ${bytes}::int8 ORDER BY kind, id`)
    yield* page
    const last = page.at(-1)
    if (last === undefined || (last.found < rowsMax && page.length === Number(last.found))) return
    kind = last.kind
    id = last.id
  }
}

/** The leaf of the definition that is in force; undefined where there is none. */
export async function readDefinitionLeaf(
  database: Queryable,
  schema: string,
  { kind, id }: { readonly kind: DefinitionKind; readonly id: string },
): Promise<number | undefined> {
  const [row] = await database.query<{ leaf: bigint }>(
    sql`SELECT leaf FROM ${sql.id(schema, 'definition')} WHERE kind = ${kind} AND id = ${id}`,
  )
  return row && Number(row.leaf)
}

type DefinitionChange = {
  readonly schema: string
  readonly catalog: Catalog
  readonly entry: AppliedEntry
} & Pick<DefinitionCreation, 'built' | 'hasIndexesLater' | 'fieldColumns'>

/** Applies the entry of a definition to the tables, and returns the catalog after it. */
export async function applyDefinition(tx: Queryable, change: DefinitionChange): Promise<Catalog> {
  const { schema, catalog, entry } = change
  const kind = String(entry.header.kind)
  const id = String(entry.header.id)
  const isRemoval = entry.body === ''
  if (isKnownKind(kind)) await kinds[kind].drop?.(tx, { schema, catalog, id, isRemoval })
  if (isRemoval) {
    const after = await updateCatalog(catalog, { kind, id, leaf: entry.leafIndex })
    await deleteRow(tx, schema, { kind, id, leaf: entry.leafIndex })
    await deleteIndexRows(tx, schema, listLost(catalog.indexes, after.indexes))
    return after
  }
  const rules = isKnownKind(kind) ? kinds[kind] : undefined
  const { body, values } = rules?.split?.(id, entry.body) ?? { body: entry.body, values: [] }
  await writeRow(tx, schema, { kind, id, leaf: entry.leafIndex, body })
  const after = await updateCatalog(catalog, { kind, id, leaf: entry.leafIndex, body })
  const { built, hasIndexesLater, fieldColumns } = change
  const places = { built, hasIndexesLater, fieldColumns }
  const creation = { schema, before: catalog, after, id, entry, values, ...places }
  await rules?.create?.(tx, creation)
  return after
}

type Row = { readonly kind: string; readonly id: string; readonly leaf: number }

async function writeRow(
  tx: Queryable,
  schema: string,
  { kind, id, leaf, body }: Row & { readonly body: string },
): Promise<void> {
  await tx.execute(
    sql`INSERT INTO ${sql.id(schema, 'definition')} (kind, id, body, leaf) VALUES (${kind}, ${id}, ${body}, ${leaf})
        ON CONFLICT (kind, id) DO UPDATE SET body = excluded.body, leaf = excluded.leaf`,
  )
}

async function deleteRow(tx: Queryable, schema: string, { kind, id, leaf }: Row): Promise<void> {
  const table = sql.id(schema, 'definition')
  await tx.execute(sql`DELETE FROM ${table} WHERE kind = ${kind} AND id = ${id}`)
  await tx.execute(sql`
    INSERT INTO ${table} (kind, id, body, leaf) VALUES (${lastDeletion}, '', 'null', ${leaf})
    ON CONFLICT (kind, id) DO UPDATE SET leaf = excluded.leaf`)
}

/** Deletes the rows of the indexes that went with their collection or view: each opening would read them. */
async function deleteIndexRows(
  tx: Queryable,
  schema: string,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return
  await tx.execute(
    sql`DELETE FROM ${sql.id(schema, 'definition')} WHERE kind = 'index' AND id = ANY(${ids}::text[])`,
  )
}

function listLost(
  before: ReadonlyMap<string, unknown>,
  after: ReadonlyMap<string, unknown>,
): readonly string[] {
  return [...before.keys()].filter((id) => !after.has(id))
}

/** The catalog with one definition set, or removed where there is no body. */
async function updateCatalog(
  before: Catalog,
  { kind, id, leaf, body }: Row & { readonly body?: string },
): Promise<Catalog> {
  const draft = makeDraft(before)
  noteLeaf(draft, leaf)
  if (!isKnownKind(kind)) return rebuildCatalog(draft, before, undefined)
  if (body === undefined) kinds[kind].remove(draft, id)
  else await setDefinition(draft, kind, { id, body })
  const { findReadable } = kinds[kind]
  return rebuildCatalog(draft, before, findReadable?.(draft, id) ?? findReadable?.(before, id))
}

async function setDefinition<K extends DefinitionKind>(
  draft: Draft,
  kind: K,
  { id, body }: { readonly id: string; readonly body: string },
): Promise<void> {
  const rules: DefinitionRules<K> = kinds[kind]
  await rules.set(draft, id, rules.parse(id, body))
}

function noteLeaf(draft: Draft, leaf: number): void {
  draft.version = Math.max(draft.version, leaf + 1)
}
