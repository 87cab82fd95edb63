import { dayMs } from '../../../base/durations.ts'
import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import { type Claim, type ClaimRow, claimColumns, claims, toClaim } from './claim-store.ts'

/** The part of the time since its end after which a payment is looked at again. */
const agePart = 16
/** Such payments that one round looks at. */
const ofRoundMax = 50
/** The time until the next look where one says nothing. */
const silentMs = 600_000
/** The time until the next look at one whose transaction is known, at least: also before its end. */
const hiddenMs = 60_000
/** No look is put away for so long, but by a clock that was ahead for a while. */
const aheadMs = 2 * dayMs

/**
 * Spaces the looks at a payment that the chain calls used, and of which it shows no more: nothing but a reorganisation, or
 * another node, changes that. Where not even its transaction is found, its looks are spaced from its end on: a node that is
 * behind knows it soon. Anybody can make such payments, and their rows stay open for good. One that is brought again is
 * looked at whenever it is.
 */
export async function noteLook(
  database: Queryable,
  { id, valid_before: end, state }: Pick<Claim, 'id' | 'valid_before' | 'state'>,
  { outcome, nowMs }: { readonly outcome: Settlement; readonly nowMs: number },
): Promise<void> {
  const ageMs = nowMs - Number(end) * 1000
  const leastMs = findLeastPause(outcome)
  if (leastMs === undefined || (leastMs === 0 && ageMs <= 0)) return
  const nextMs = Math.floor(nowMs + Math.min(Math.max(ageMs / agePart, leastMs), dayMs))
  // Its state may have changed meanwhile: it waits for something else then.
  await database.execute(sql`
    UPDATE ${claims} SET next_look_ms = ${nextMs}::int8 WHERE id = ${id} AND state = ${state}`)
}

/** Takes some of those whose look is due, the longest due first, so that no other process does. */
export async function takeRareLooks(database: Queryable, nowMs: number): Promise<Claim[]> {
  const take = (isMeant: SqlStatement) => sql`ARRAY(
    SELECT id FROM ${claims} WHERE ${isMeant}
    ORDER BY next_look_ms LIMIT ${ofRoundMax} FOR UPDATE SKIP LOCKED)`
  const due = take(sql`next_look_ms <= ${nowMs}::int8`)
  const ahead = take(sql`next_look_ms > ${nowMs + aheadMs}::int8`)
  const rows = await database.query<ClaimRow>(sql`
    UPDATE ${claims} SET next_look_ms = ${nowMs + silentMs}::int8
    WHERE id = ANY(${due} || ${ahead}) RETURNING ${claimColumns}`)
  return rows.map(toClaim)
}

/** Finds the least time between two looks at a payment that is used and not seen, in milliseconds; undefined for any other. */
function findLeastPause(outcome: Settlement): number | undefined {
  if (outcome.state !== 'pending') return undefined
  if (outcome.usedIn !== undefined) return hiddenMs
  return outcome.reason === 'use_not_found' ? 0 : undefined
}
