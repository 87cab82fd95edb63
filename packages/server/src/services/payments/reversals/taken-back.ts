import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'

const takenBack = sql.id('operations', 'taken_back')

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

/** Reads which of these moves were taken back: the transaction that has each now, null where none has. */
export async function readTakenBack(
  database: Queryable,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string | null>> {
  const rows = await database.query<{ id: string; transaction: string | null }>(
    sql`SELECT id, transaction FROM ${takenBack} WHERE id = ANY(${ids}::text[])`,
  )
  return new Map(rows.map(({ id, transaction }) => [id, transaction]))
}

/** Notes that a move was taken back, and which other transaction has it now; null where none has. */
export async function setTakenBack(
  database: Queryable,
  id: string,
  transaction: string | null,
): Promise<void> {
  await database.execute(sql`
    INSERT INTO ${takenBack} (id, transaction) VALUES (${id}, ${transaction})
    ON CONFLICT (id) DO UPDATE SET transaction = excluded.transaction`)
}

/** Forgets that a move was taken back: its chain has it as it is booked, or it is reversed. */
export async function deleteTakenBack(database: Queryable, id: string): Promise<void> {
  await database.execute(sql`DELETE FROM ${takenBack} WHERE id = ${id}`)
}
