import { requirePresent } from '../../../base/assert.ts'
import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'

export const takenBack = sql.id('operations', 'taken_back')

/**
 * Moves of money that are booked and that a chain took back: those that it does not have now, and those that it has by
 * another transaction than the one that is booked.
 */
export function buildTakenBackTable(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${takenBack} (
      id text NOT NULL, transaction text, CONSTRAINT taken_back_pkey PRIMARY KEY (id))`,
  ]
}

/** A note that a move was taken back, as it was read or written. */
export type TakenBack = {
  /** The transaction that has the move now; null where none has. */
  readonly transaction: string | null
  /** Changes each time that it is noted, also with the same content. */
  readonly version: string
}

/** Reads which of these moves were taken back. */
export async function readTakenBack(
  database: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, TakenBack>> {
  const rows = await database.query<TakenBack & { readonly id: string }>(
    sql`SELECT id, transaction, xmin::text AS version FROM ${takenBack} WHERE id = ANY(${ids}::text[])`,
  )
  return new Map(rows.map(({ id, ...note }) => [id, note]))
}

/** Notes that a move was taken back, and which other transaction has it now; null where none has. */
export async function setTakenBack(
  database: Queryable,
  id: string,
  transaction: string | null,
): Promise<TakenBack> {
  const [row] = await database.query<{ version: string }>(sql`
    INSERT INTO ${takenBack} (id, transaction) VALUES (${id}, ${transaction})
    ON CONFLICT (id) DO UPDATE SET transaction = excluded.transaction RETURNING xmin::text AS version`)
  return { transaction, version: requirePresent(row, 'the note that was written').version }
}

/** Locks a note until the end of the transaction; false where it was written once more since, or is gone. */
export async function lockTakenBack(
  tx: Queryable,
  id: string,
  { version }: TakenBack,
): Promise<boolean> {
  const rows = await tx.query(
    sql`SELECT id FROM ${takenBack} WHERE id = ${id} AND xmin::text = ${version} FOR UPDATE`,
  )
  return rows.length === 1
}

/** Forgets that a move was taken back: its chain has it as it is booked, or it is reversed. */
export async function deleteTakenBack(database: Queryable, id: string): Promise<void> {
  await database.execute(sql`DELETE FROM ${takenBack} WHERE id = ${id}`)
}
