import { dayMs } from '../../../base/durations.ts'
import type { Queryable } from '../../../database/database.ts'
import { sql } from '../../../database/sql.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import { type Claim, type ClaimRow, claimColumns, claims, toClaim } from './claim-store.ts'

/** The part of the time since its end after which a payment is looked at again. */
const agePart = 16
/** Such payments that one round looks at. */
const ofRoundMax = 50
/** The time until the next look where one says nothing. */
const silentMs = 600_000

/**
 * Spaces the looks at a payment past its end that the chain calls used, and of which it shows no more: nothing but a
 * reorganisation, or another node, changes that. Anybody can make such payments, and their rows stay open for good. One
 * that is brought again is looked at whenever it is.
 */
export async function noteLook(
  database: Queryable,
  { id, valid_before: end, state }: Pick<Claim, 'id' | 'valid_before' | 'state'>,
  { outcome, nowMs }: { readonly outcome: Settlement; readonly nowMs: number },
): Promise<void> {
  const ageMs = nowMs - Number(end) * 1000
  if (ageMs <= 0 || !isUnseen(outcome)) return
  const nextMs = Math.floor(nowMs + Math.min(ageMs / agePart, dayMs))
  // Its state may have changed meanwhile: it waits for something else then.
  await database.execute(sql`
    UPDATE ${claims} SET next_look_ms = ${nextMs}::int8 WHERE id = ${id} AND state = ${state}`)
}

/** Takes some of those whose look is due, the longest due first, so that no other process does. */
export async function takeRareLooks(database: Queryable, nowMs: number): Promise<Claim[]> {
  const rows = await database.query<ClaimRow>(sql`
    UPDATE ${claims} SET next_look_ms = ${nowMs + silentMs}::int8
    WHERE id = ANY(ARRAY(
      SELECT id FROM ${claims} WHERE next_look_ms <= ${nowMs}::int8
      ORDER BY next_look_ms LIMIT ${ofRoundMax} FOR UPDATE SKIP LOCKED
    )) RETURNING ${claimColumns}`)
  return rows.map(toClaim)
}

function isUnseen(outcome: Settlement): boolean {
  if (outcome.state !== 'pending') return false
  return outcome.usedIn !== undefined || outcome.reason === 'use_not_found'
}
