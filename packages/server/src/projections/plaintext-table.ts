import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { CollectionDefinition } from '../model/definitions.ts'
import {
  getPlaintextPositionTable,
  getPlaintextTable,
  isQueryable,
} from '../model/encrypted-collections.ts'
import { parseFieldPath } from '../query/field-path.ts'
import { compileIndex } from '../query/index-key.ts'
import { dropTable } from './definitions/change-table.ts'

// A queryable collection has a second table with its opened versions, and a third of one row with the position that
// they are complete up to. The applier makes and drops both, as the definition says, and needs no key for that; who
// has the keys fills them. Both are unlogged: the write-ahead log, which backups of the database and its standbys are
// made of, never has plaintext, and after a crash of the database both are empty together. No column has statistics,
// as these would hold samples of the values in a logged table that outlives this one.

export type PlaintextPlace = {
  readonly schema: string
  readonly collection: Pick<CollectionDefinition, 'number' | 'token_fields'>
}

/** Makes, drops or makes anew the plaintext table where the definition of its collection has changed. */
export async function changePlaintextTable(
  tx: Queryable,
  schema: string,
  { before, after }: Record<'before' | 'after', CollectionDefinition | undefined>,
): Promise<void> {
  const old = before !== undefined && isQueryable(before) ? before : undefined
  const made = after !== undefined && isQueryable(after) ? after : undefined
  if (old !== undefined && made !== undefined && hasSameTable(old, made)) return
  if (old !== undefined)
    for (const table of [getPlaintextTable(old), getPlaintextPositionTable(old)])
      await dropTable(tx, { schema, table })
  if (made === undefined) return
  for (const statement of buildTables({ schema, collection: made })) await tx.execute(statement)
}

/** Its indexes are those of the fields that the schema declares. */
function hasSameTable(one: CollectionDefinition, other: CollectionDefinition): boolean {
  const [a, b] = [one, other].map(({ number, token_fields }) =>
    JSON.stringify([number, listFields(token_fields)]),
  )
  return a === b
}

function listFields(fields: CollectionDefinition['token_fields']): readonly string[] {
  return (fields ?? []).map(({ field }) => field)
}

function buildTables({ schema, collection }: PlaintextPlace): SqlStatement[] {
  const name = getPlaintextTable(collection)
  const table = sql.id(schema, name)
  return [
    sql`CREATE UNLOGGED TABLE ${table} (
      leaf int8 NOT NULL, height int8 NOT NULL, sequence int4 NOT NULL, key text NOT NULL,
      deleted bool NOT NULL, superseded_by int8, data jsonb NOT NULL, body text NOT NULL,
      CONSTRAINT ${sql.id(`${name}_pkey`)} PRIMARY KEY (leaf))`,
    sql`ALTER TABLE ${table} ALTER key SET STATISTICS 0, ALTER data SET STATISTICS 0, ALTER body SET STATISTICS 0`,
    sql`CREATE INDEX ${sql.id(`${name}_key`)} ON ${table} (key) WHERE superseded_by IS NULL`,
    ...listFields(collection.token_fields).flatMap((field, at) => {
      const index = `${name}_field${at}`
      const { text, values } = compileIndex({
        ...{ schema, table: name, name: index, method: 'btree' as const, sparse: false },
        paths: [parseFieldPath(field, '')],
        predicate: undefined,
        extensionSchema: undefined,
        concurrently: false,
      })
      return [
        sql.compiled(text, values),
        sql`ALTER INDEX ${sql.id(schema, index)} ALTER COLUMN 1 SET STATISTICS 0`,
      ]
    }),
    sql`CREATE UNLOGGED TABLE ${sql.id(schema, getPlaintextPositionTable(collection))} (
      id int4 NOT NULL, height int8 NOT NULL, sequence int4 NOT NULL, leaf int8 NOT NULL,
      refreshed_at int8 NOT NULL, unopened int8 NOT NULL,
      CONSTRAINT ${sql.id(`${getPlaintextPositionTable(collection)}_pkey`)} PRIMARY KEY (id))`,
  ]
}

export type SealedVersion = {
  readonly leaf: bigint
  readonly height: bigint
  readonly sequence: number
  readonly key: string
  readonly body: string
}

export type Position = {
  readonly height: bigint
  readonly sequence: number
  /** The number of leaves up to it. */
  readonly leaf: bigint
}

export type UncopiedPage = {
  /** The number of leaves that the plaintext table is complete up to; 0 where it has no position. */
  readonly from: bigint
  readonly versions: readonly SealedVersion[]
  /** The position once these versions are in it. */
  readonly to: Position
  /** There are no others up to the watermark. */
  readonly all: boolean
}

/**
 * The sealed versions behind the position of the plaintext table, oldest first: at most so many, and no more than some
 * bytes unless the first alone has more.
 */
export async function readUnopened(
  database: Queryable,
  { schema, collection }: PlaintextPlace,
  max: { readonly rows: number; readonly bytes: number },
): Promise<UncopiedPage> {
  const at = sql`coalesce((SELECT leaf FROM ${sql.id(schema, getPlaintextPositionTable(collection))} WHERE id = 1), 0)`
  type Row = { readonly [K in keyof SealedVersion]: SealedVersion[K] | null } & {
    readonly from: bigint
    readonly mark_height: bigint
    readonly mark_sequence: number
    readonly mark_leaf: bigint
    readonly found: bigint | null
  }
  const rows = await database.query<Row>(sql`
    SELECT ${at} AS "from", mark.height AS mark_height, mark.sequence AS mark_sequence, mark.leaf AS mark_leaf,
      page.leaf, page.height, page.sequence, page.key, page.body, page.found
    FROM ${sql.id(schema, 'watermark')} AS mark LEFT JOIN (
      SELECT leaf, height, sequence, key, body, count(*) OVER () AS found,
        sum(octet_length(body)) OVER (ORDER BY leaf) - octet_length(body) AS before
      FROM (
        SELECT leaf, height, sequence, key, body FROM ${sql.id(schema, `c_${collection.number}`)}
        WHERE leaf >= ${at} ORDER BY leaf LIMIT ${max.rows}
      ) AS next) AS page ON page.before < ${max.bytes}
    WHERE mark.id = 1 ORDER BY page.leaf`)
  const [first] = rows
  if (first === undefined) throw new Error('the watermark is missing')
  const versions = rows.flatMap(({ leaf, height, sequence, key, body }) =>
    leaf === null || height === null || sequence === null || key === null || body === null
      ? []
      : [{ leaf, height, sequence, key, body }],
  )
  const found = Number(first.found ?? 0)
  const all = found < max.rows && versions.length === found
  const last = versions.at(-1)
  const to =
    all || last === undefined
      ? { height: first.mark_height, sequence: first.mark_sequence, leaf: first.mark_leaf }
      : { height: last.height, sequence: last.sequence, leaf: last.leaf + 1n }
  return { from: first.from, versions, to, all }
}

export type OpenedPage = Pick<UncopiedPage, 'from' | 'to'> & {
  readonly versions: readonly Pick<SealedVersion, 'leaf' | 'key' | 'body'>[]
  /** Versions that did not open, and are passed over. */
  readonly unopened: number
  /** Milliseconds since 1970. */
  readonly now: number
}

/**
 * Adds opened versions, marks those that others have replaced up to the new position, and takes it, in one
 * transaction. Versions that were erased since they were read stay out. False where the table is at another position
 * than they follow.
 */
export async function addOpened(
  tx: Queryable,
  { schema, collection }: PlaintextPlace,
  { from, to, versions, unopened, now }: OpenedPage,
): Promise<boolean> {
  const table = sql.id(schema, getPlaintextTable(collection))
  const sealed = sql.id(schema, `c_${collection.number}`)
  const position = sql.id(schema, getPlaintextPositionTable(collection))
  await lockPlaintext(tx, { schema, collection })
  const [at] = await tx.query<{ leaf: bigint }>(sql`SELECT leaf FROM ${position} WHERE id = 1`)
  if ((at?.leaf ?? 0n) !== from) return false
  await tx.execute(sql`
    INSERT INTO ${table} (leaf, height, sequence, key, deleted, superseded_by, data, body)
    SELECT version.leaf, version.height, version.sequence, opened.key, version.deleted,
      CASE WHEN version.superseded_by < ${to.leaf} THEN version.superseded_by END, opened.body::jsonb, opened.body
    FROM unnest(${versions.map(({ leaf }) => leaf)}::int8[], ${versions.map(({ key }) => key)}::text[],
      ${versions.map(({ body }) => body)}::text[]) AS opened (leaf, key, body)
    JOIN ${sealed} AS version ON version.leaf = opened.leaf`)
  await tx.execute(sql`
    UPDATE ${table} AS opened SET superseded_by = version.superseded_by FROM ${sealed} AS version
    WHERE version.superseded_by >= ${from} AND version.superseded_by < ${to.leaf}
      AND opened.leaf = version.leaf AND opened.superseded_by IS NULL`)
  await tx.execute(sql`
    INSERT INTO ${position} AS known (id, height, sequence, leaf, refreshed_at, unopened)
    VALUES (1, ${to.height}, ${to.sequence}, ${to.leaf}, ${now}, ${unopened})
    ON CONFLICT (id) DO UPDATE SET height = excluded.height, sequence = excluded.sequence, leaf = excluded.leaf,
      refreshed_at = excluded.refreshed_at, unopened = known.unopened + excluded.unopened`)
  return true
}

/**
 * Waits for whoever is at work on the table until this transaction ends. So a page that is being added has either
 * been added when its versions are erased, or finds that they are gone.
 */
export async function lockPlaintext(
  tx: Queryable,
  { schema, collection }: PlaintextPlace,
): Promise<void> {
  await tx.execute(
    sql`LOCK TABLE ${sql.id(schema, getPlaintextPositionTable(collection))} IN SHARE ROW EXCLUSIVE MODE`,
  )
}

/** Empties the table, whose files shrink to nothing with the commit. */
export async function deletePlaintext(
  tx: Queryable,
  { schema, collection }: PlaintextPlace,
): Promise<void> {
  const names = [getPlaintextTable(collection), getPlaintextPositionTable(collection)]
  await tx.execute(sql`TRUNCATE ${sql.join(names.map((name) => sql.id(schema, name)))}`)
}

/** Counts the versions of collections that did not open; a table that is not filled yet counts none. */
export async function countUnopened(
  database: Queryable,
  schema: string,
  collections: readonly Pick<CollectionDefinition, 'number'>[],
): Promise<number> {
  let sum = 0
  for (const one of collections) {
    const [row] = await database.query<{ unopened: bigint }>(
      sql`SELECT unopened FROM ${sql.id(schema, getPlaintextPositionTable(one))} WHERE id = 1`,
    )
    sum += Number(row?.unopened ?? 0)
  }
  return sum
}
