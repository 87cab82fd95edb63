import {
  dropNotes,
  getCurrentNote,
  printNoteCondition,
  printNoteDeletion,
} from '../../chain/commit-notes.ts'
import type { Queryable } from '../../database/database.ts'
import { type FirstPiece, printFirstPiece, readRest } from '../../database/long-value.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

const table = sql.id('operations', 'named_request')

/** A request with an Idempotency-Key. `answer` is sealed; null where it has none (yet), and empty where it was dropped. */
export type NamedRequest = {
  /** Made of caller and key, neither of which can be told from it. */
  readonly id: string
  /** Whose requests it is counted with. */
  readonly owner: string
  /** The application that it is about, where it is about one. */
  readonly app: string | null
  readonly request_hash: string
  /** The process that carries it out, or did. */
  readonly holder: string
  readonly answer: Buffer | null
  readonly expires_at_ms: bigint
}

export function buildNamedRequestTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (
      id text NOT NULL, owner text NOT NULL, request_hash text NOT NULL, holder text NOT NULL, answer bytea,
      expires_at_ms int8 NOT NULL, CONSTRAINT named_request_pkey PRIMARY KEY (id))`,
    sql`CREATE INDEX named_request_owner ON ${table} (owner, expires_at_ms)`,
    sql`CREATE INDEX named_request_expiry ON ${table} (expires_at_ms)`,
  ]
}

/** Requests from before have none, and are gone after a day. */
export function buildNamedApplicationColumn(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${table} ADD COLUMN app text`,
    sql`CREATE INDEX named_request_app ON ${table} (app)`,
  ]
}

/** False where there is one of this id. */
export async function insertNamedRequest(
  database: Queryable,
  { id, owner, app, request_hash, holder, expires_at_ms }: Omit<NamedRequest, 'answer'>,
): Promise<boolean> {
  const inserted = await database.execute(sql`
    INSERT INTO ${table} (id, owner, app, request_hash, holder, expires_at_ms)
    VALUES (${id}, ${owner}, ${app}, ${request_hash}, ${holder}, ${expires_at_ms}::int8) ON CONFLICT (id) DO NOTHING`)
  return inserted === 1
}

/** Finds one, and whether a chain has entries of it. Its answer, which may have megabytes, is read in pieces. */
export async function findNamedRequest(
  database: Queryable,
  id: string,
): Promise<(NamedRequest & { readonly isNoted: boolean }) | undefined> {
  const [column, rows] = [sql.id('answer'), sql`FROM ${table} AS named WHERE id = ${id}`]
  for (;;) {
    const [row] = await database.query<
      Omit<NamedRequest, 'answer'> & { readonly isNoted: boolean } & FirstPiece
    >(sql`
      SELECT id, owner, app, request_hash, holder, expires_at_ms, ${printNoteCondition(sql`named.id`)} AS "isNoted",
        ${printFirstPiece(column)} ${rows}`)
    if (row === undefined) return undefined
    const { piece, bytes, row_version, ...found } = row
    if (piece === null) return { ...found, answer: null }
    const answer = await readRest(database, { column, rows }, { piece, bytes, row_version })
    if (answer !== undefined) return { ...found, answer }
  }
}

/** Makes this process the holder of a request that another one has left without an answer; false where it was not. */
export async function adoptNamedRequest(
  database: Queryable,
  { id, holder }: Pick<NamedRequest, 'id' | 'holder'>,
  to: string,
): Promise<boolean> {
  const moved = await database.execute(sql`
    UPDATE ${table} SET holder = ${to} WHERE id = ${id} AND holder = ${holder} AND answer IS NULL`)
  return moved === 1
}

export async function keepNamedAnswer(
  database: Queryable,
  { id, holder }: Pick<NamedRequest, 'id' | 'holder'>,
  answer: Buffer,
): Promise<void> {
  await database.execute(sql`
    UPDATE ${table} SET answer = ${answer} WHERE id = ${id} AND holder = ${holder} AND answer IS NULL`)
}

/**
 * Drops the answers of requests that are about an application, or were made by its keys: they may name records that are
 * gone. The requests stay, so that none of them is carried out again. One that is under way loses its holder, so its
 * answer, which may have been read before, is not kept; but for the request that this is a part of.
 */
export async function dropNamedAnswers(database: Queryable, app: string): Promise<void> {
  await database.execute(sql`
    UPDATE ${table} SET answer = CASE WHEN answer IS NOT NULL THEN ''::bytea END,
      holder = CASE WHEN answer IS NOT NULL THEN holder ELSE '' END
    WHERE answer IS DISTINCT FROM '' AND (app = ${app} OR owner = ${formatOwner(app)}) AND id <> ${getCurrentNote() ?? ''}`)
}

/** Formats the owner of the requests of an application's keys, which are counted together. */
export function formatOwner(app: string): string {
  return `app:${app}`
}

/**
 * Forgets a request that this holder refused, with its note, which must not speak of the next one of this id; false
 * where it left entries in a chain, unless that does not matter.
 */
export async function deleteRefused(
  database: Queryable,
  { id, holder }: Pick<NamedRequest, 'id' | 'holder'>,
  { evenNoted }: { readonly evenNoted: boolean },
): Promise<boolean> {
  const condition = evenNoted ? sql`true` : sql`NOT ${printNoteCondition(sql`named.id`)}`
  const deleted = await database.query(sql`
    WITH refused AS (
      DELETE FROM ${table} AS named WHERE id = ${id} AND holder = ${holder} AND answer IS NULL AND ${condition} RETURNING id),
    noted AS (${printNoteDeletion(sql`refused`)})
    SELECT id FROM refused`)
  return deleted.length === 1
}

/** Drops the requests that are past their time. */
export async function dropExpired(database: Queryable, nowMs: number): Promise<void> {
  await database.execute(sql`DELETE FROM ${table} WHERE expires_at_ms < ${nowMs}::int8`)
  await dropNotes(database, table)
}

/**
 * Drops the oldest requests of owners that have too many of them, answered or not, and those with too long answers. One
 * that is under way is among the newest.
 */
export async function dropExcess(
  database: Queryable,
  bounds: { readonly countMax: number; readonly bytesMax: number },
): Promise<void> {
  await database.execute(sql`
    DELETE FROM ${table} WHERE id IN (
      SELECT id FROM (
        SELECT id, answer IS NOT NULL AS "isAnswered", row_number() OVER newest AS number,
          sum(octet_length(answer)) OVER newest AS bytes
        FROM ${table} WHERE owner IN (
          SELECT owner FROM ${table} GROUP BY owner
          HAVING count(*) > ${bounds.countMax}::int8 OR sum(octet_length(answer)) > ${bounds.bytesMax}::int8)
        WINDOW newest AS (PARTITION BY owner ORDER BY expires_at_ms DESC, id)) AS listed
      WHERE number > ${bounds.countMax}::int8 OR ("isAnswered" AND bytes > ${bounds.bytesMax}::int8))`)
}
