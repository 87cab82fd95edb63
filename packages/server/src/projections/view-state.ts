import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { Catalog } from '../model/catalog.ts'
import type { ForeignPositions, StoredView } from '../model/definitions.ts'
import { getRowsName } from '../views/view-rows.ts'

/** `building`: being filled, repaired or caught up; what was there before is read meanwhile. */
export type ViewStatus = 'building' | 'live' | 'lazy' | 'stale'

/** Just behind an entry of the application's chain; `leaf` is the number of entries up to there. */
export type Position = {
  readonly leaf: number
  readonly height: number
  readonly sequence: number
}

/** The progress of a view. Only `wanted` follows from the entries; the rest is the work done so far. */
export type ViewProgress = Position & {
  readonly view: string
  readonly status: ViewStatus
  readonly reason: string | null
  /** True if the rows are the definition at the position, so that changes can be added to them. */
  readonly whole: boolean
  /** Rises with everything that invalidates work under way on the view. */
  readonly revision: number
  /** The positions of other applications' chains. */
  readonly positions: ForeignPositions
  /** The position that was asked of a lazy view. */
  readonly wanted: Position & { readonly positions: ForeignPositions }
  /** Milliseconds since 1970; undefined before it is filled for the first time. */
  readonly refreshedAt: number | undefined
}

export const viewStateTable = 'view_state'

/** Its columns leaf, height and sequence are named as those of the watermark, which they replace in reads of a view. */
export function buildViewStateTables(schema: string): SqlStatement {
  return sql`CREATE TABLE IF NOT EXISTS ${sql.id(schema, viewStateTable)} (
    id int8 NOT NULL, view text NOT NULL, status text NOT NULL, reason text, whole bool NOT NULL, revision int8 NOT NULL,
    leaf int8 NOT NULL, height int8 NOT NULL, sequence int4 NOT NULL, positions text NOT NULL,
    wanted_leaf int8 NOT NULL, wanted_height int8 NOT NULL, wanted_sequence int4 NOT NULL, wanted_positions text NOT NULL,
    refreshed_at int8, CONSTRAINT view_state_pkey PRIMARY KEY (id))`
}

type Row = {
  readonly view: string
  readonly status: ViewStatus
  readonly reason: string | null
  readonly whole: boolean
  readonly revision: bigint
  readonly leaf: bigint
  readonly height: bigint
  readonly sequence: number
  readonly positions: string
  readonly wanted_leaf: bigint
  readonly wanted_height: bigint
  readonly wanted_sequence: number
  readonly wanted_positions: string
  readonly refreshed_at: bigint | null
}

/** Reads the progress of an application's views, by id; empty where it never had one. */
export async function readProgress(
  database: Queryable,
  schema: string,
): Promise<ReadonlyMap<string, ViewProgress>> {
  const [found] = await database.query<{ found: boolean }>(
    sql`SELECT to_regclass(${`${schema}.${viewStateTable}`}) IS NOT NULL AS found`,
  )
  if (found?.found !== true) return new Map()
  const rows = await database.query<Row>(sql`
    SELECT view, status, reason, whole, revision, leaf, height, sequence, positions,
      wanted_leaf, wanted_height, wanted_sequence, wanted_positions, refreshed_at
    FROM ${sql.id(schema, viewStateTable)} ORDER BY id`)
  return new Map(rows.map((row) => [row.view, toProgress(row)]))
}

/** Returns true for a view that is filled and gives its own rows to whoever reads it. */
export function isWhole(progress: ViewProgress | undefined): boolean {
  return progress?.status === 'live' || (progress?.status === 'lazy' && progress.whole)
}

/** Reads the positions of an application's live views, by id, as leaves; the table must be there. */
export async function readLive(
  tx: Queryable,
  schema: string,
): Promise<ReadonlyMap<string, number>> {
  const rows = await tx.query<Pick<Row, 'view' | 'leaf'>>(
    sql`SELECT view, leaf FROM ${sql.id(schema, viewStateTable)} WHERE status = 'live'`,
  )
  return new Map(rows.map(({ view, leaf }) => [view, Number(leaf)]))
}

function toProgress(row: Row): ViewProgress {
  const { view, status, reason, whole, sequence } = row
  return {
    view,
    status,
    reason,
    whole,
    revision: Number(row.revision),
    leaf: Number(row.leaf),
    height: Number(row.height),
    sequence,
    positions: JSON.parse(row.positions),
    wanted: {
      leaf: Number(row.wanted_leaf),
      height: Number(row.wanted_height),
      sequence: row.wanted_sequence,
      positions: JSON.parse(row.wanted_positions),
    },
    refreshedAt: row.refreshed_at === null ? undefined : Number(row.refreshed_at),
  }
}

/** A new view waits to be filled, up to the entry that defines it. */
export async function insertProgress(
  tx: Queryable,
  schema: string,
  { view, wanted }: { view: StoredView; wanted: Position },
): Promise<void> {
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, viewStateTable)} (id, view, status, reason, whole, revision, leaf, height, sequence, positions,
      wanted_leaf, wanted_height, wanted_sequence, wanted_positions, refreshed_at)
    VALUES (${view.number}, ${view.id}, 'building', NULL, false, 0, 0, 0, 0, '{}',
      ${wanted.leaf}, ${wanted.height}, ${wanted.sequence}, ${JSON.stringify(view.positions)}, NULL)`)
}

export async function deleteProgress(
  tx: Queryable,
  schema: string,
  view: { readonly number: number },
): Promise<void> {
  await tx.execute(sql`DELETE FROM ${sql.id(schema, viewStateTable)} WHERE id = ${view.number}`)
}

/** A refresh was asked for; one that stands still is to be made anew. */
export async function requestProgress(
  tx: Queryable,
  schema: string,
  { view, wanted }: { view: string; wanted: ViewProgress['wanted'] },
): Promise<void> {
  await tx.execute(sql`
    UPDATE ${sql.id(schema, viewStateTable)} SET wanted_leaf = ${wanted.leaf}, wanted_height = ${wanted.height},
      wanted_sequence = ${wanted.sequence}, wanted_positions = ${JSON.stringify(wanted.positions)},
      status = CASE WHEN status = 'stale' THEN 'building' ELSE status END
    WHERE view = ${view}`)
}

/**
 * Marks views whose rows no longer match their definitions, so that they are made anew; where a leaf is given, those
 * that do not count it yet.
 */
export async function distrust(
  tx: Queryable,
  schema: string,
  { views, uncounted }: { readonly views: readonly string[]; readonly uncounted?: number },
): Promise<void> {
  if (views.length === 0) return
  await tx.execute(sql`
    UPDATE ${sql.id(schema, viewStateTable)} SET status = 'building', whole = false, revision = revision + 1
    WHERE view = ANY(${views}::text[]) AND status <> 'stale' AND leaf <= coalesce(${uncounted ?? null}::int8, leaf)`)
}

export async function markStale(
  tx: Queryable,
  schema: string,
  { view, reason }: { view: string; reason: string },
): Promise<void> {
  await tx.execute(sql`
    UPDATE ${sql.id(schema, viewStateTable)} SET status = 'stale', whole = false, reason = ${reason} WHERE view = ${view}`)
}

/**
 * The number of the meanings that the statements of views have. It rises with every change by which a stored definition
 * gives other rows than before; so rows that an earlier version of the service made never mix with later ones.
 */
const viewMeanings = 5

const meaningsNote = `meanings ${viewMeanings}`

/**
 * Notes at a view's table that its rows are made with the meanings of now; false where it says so already. It comes
 * before the rows: an index that is being built keeps the note waiting, and would wait for a transaction that has
 * written rows.
 */
export async function noteMeanings(
  tx: Queryable,
  schema: string,
  view: StoredView,
): Promise<boolean> {
  const others = await listOtherMeanings(tx, schema, [view])
  if (others.length === 0) return false
  const table = sql.id(schema, getRowsName(view.number))
  await tx.execute(sql`COMMENT ON TABLE ${table} IS ${sql.literal(meaningsNote)}`)
  return true
}

/** Marks the views whose rows were made with other meanings than those of now, so that they are made anew. */
export async function distrustOtherMeanings(
  database: Queryable,
  schema: string,
  views: readonly StoredView[],
): Promise<void> {
  const others = await listOtherMeanings(database, schema, views)
  await distrust(database, schema, { views: others.map(({ id }) => id) })
}

async function listOtherMeanings(
  database: Queryable,
  schema: string,
  views: readonly StoredView[],
): Promise<readonly StoredView[]> {
  const tables = views.map(({ number }) => getRowsName(number))
  const rows = await database.query<{ name: string }>(sql`
    SELECT class.relname::text AS name FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = ${schema} AND class.relname = ANY(${tables}::text[])
      AND pg_catalog.obj_description(class.oid, 'pg_class') = ${meaningsNote}`)
  const known = new Set(rows.map(({ name }) => name))
  return views.filter(({ number }) => !known.has(getRowsName(number)))
}

/**
 * Marks views whose rows match their definitions at a position now. A given revision must still be that of the
 * view, and rises; false where it is not.
 */
export async function markAt(
  tx: Queryable,
  schema: string,
  done: {
    readonly views: readonly string[]
    readonly at: Position
    readonly status: ViewStatus
    readonly positions?: ForeignPositions
    readonly now: number
    readonly revision?: number
  },
): Promise<boolean> {
  const { views, at, status, now, revision } = done
  const changed = await tx.execute(sql`
    UPDATE ${sql.id(schema, viewStateTable)} SET status = ${status}, reason = NULL, whole = true,
      leaf = ${at.leaf}, height = ${at.height}, sequence = ${at.sequence},
      positions = ${JSON.stringify(done.positions ?? {})}, refreshed_at = ${now},
      revision = revision + ${revision === undefined ? 0 : 1}::int8
    WHERE view = ANY(${views}::text[])
      AND revision = coalesce(${revision ?? null}::int8, revision)`)
  return changed === views.length
}

/** Leaves live views without time left to be caught up beside the writes. */
export async function markBehind(
  tx: Queryable,
  schema: string,
  views: readonly string[],
): Promise<void> {
  await tx.execute(sql`
    UPDATE ${sql.id(schema, viewStateTable)} SET status = 'building' WHERE view = ANY(${views}::text[])`)
}

/** Notes the refresh that an entry asks for; that of a view that was dropped since is passed over. */
export async function noteRefresh(
  tx: Queryable,
  schema: string,
  { catalog, entry }: { catalog: Catalog; entry: AppliedEntry },
): Promise<void> {
  const view = String(entry.header.view)
  if (!catalog.views.has(view)) return
  const wanted = { ...getPositionAfter(entry), positions: JSON.parse(entry.body) }
  await requestProgress(tx, schema, { view, wanted })
}

/** Returns the position just behind an entry. */
export function getPositionAfter({ leafIndex, height, sequence }: AppliedEntry): Position {
  return { leaf: leafIndex + 1, height, sequence }
}
