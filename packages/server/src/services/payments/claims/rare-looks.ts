import { dayMs } from '../../../base/durations.ts'
import type { Queryable } from '../../../database/database.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import type { Settlement } from '../../../x402/facilitator.ts'
import { type Claim, claims } from './claim-store.ts'

/** The part of the time since its end after which a payment is looked at again. */
const agePart = 16

/**
 * Spaces the looks at a payment past its end that the chain calls used, and of which it shows no more: nothing but a
 * reorganisation, or another node, changes that. Its row stays open for good, and each look costs some calls. One that
 * is brought again is looked at whenever it is.
 */
export async function noteLook(
  database: Queryable,
  { id, valid_before: end }: Pick<Claim, 'id' | 'valid_before'>,
  { outcome, nowMs }: { readonly outcome: Settlement; readonly nowMs: number },
): Promise<void> {
  const ageMs = nowMs - Number(end) * 1000
  if (ageMs <= 0 || !isUnseen(outcome)) return
  const nextMs = Math.floor(nowMs + Math.min(ageMs / agePart, dayMs))
  await database.execute(sql`UPDATE ${claims} SET next_look_ms = ${nextMs}::int8 WHERE id = ${id}`)
}

/** The condition of claims whose look is due; those that wait for something else than a look are. */
export function printIsDue(nowMs: number | undefined): SqlStatement {
  if (nowMs === undefined) return sql`true`
  return sql`(next_look_ms IS NULL OR next_look_ms <= ${nowMs}::int8 OR state NOT IN ('claimed', 'ready', 'failed', 'sold'))`
}

function isUnseen(outcome: Settlement): boolean {
  if (outcome.state !== 'pending') return false
  return outcome.usedIn !== undefined || outcome.reason === 'use_not_found'
}
