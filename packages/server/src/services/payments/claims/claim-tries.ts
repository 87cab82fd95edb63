import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import { type Claim, claims, claimVersion } from './claim-store.ts'

/**
 * Joins the try of a payment whose money is asked for, or notes who began it; returns the version of its claim. Each who
 * joins makes another one: so whoever hears that nothing was sent, or came, finds whether somebody else still tries. A
 * payment that is seen now waits for no rare look, should its request be cut off.
 */
export async function joinTry(
  database: Queryable,
  { id }: Pick<Claim, 'id'>,
): Promise<string | undefined> {
  const [row] = await database.query<{ version: string }>(
    sql`UPDATE ${claims} SET state = state, next_look_ms = NULL WHERE id = ${id} AND state = 'claimed' RETURNING ${claimVersion}`,
  )
  return row?.version
}

/** Finds the version of a claim whose money is asked for, without joining. */
export async function findTry(
  database: Queryable,
  { id }: Pick<Claim, 'id'>,
): Promise<string | undefined> {
  const [row] = await database.query<{ version: string }>(
    sql`SELECT ${claimVersion} FROM ${claims} WHERE id = ${id} AND state = 'claimed'`,
  )
  return row?.version
}
