import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'
import type { JournalState } from './journal.ts'

/** A place in the list of the journal by time. */
export type JournalPlace = { readonly at: bigint; readonly id: string }

/** A transaction of one of our keys, without its bytes. */
type Listed = {
  readonly id: string
  readonly network: string
  readonly signer: string
  readonly nonce: bigint
  readonly hash: string
  /** Oldest first. */
  readonly earlier_hashes: readonly string[]
  readonly state: JournalState
  readonly block_number: bigint | null
  readonly created_at_ms: bigint
  /** The parts of a joint transaction, or the id of any other one. */
  readonly names: readonly string[]
}

/** The journal is listed by time. */
export function buildJournalTimes(): SqlStatement[] {
  return [
    sql`CREATE INDEX IF NOT EXISTS transaction_journal_time ON operations.transaction_journal (created_at_ms, id)`,
  ]
}

/** Lists the transactions of all keys, newest first, before the cursor. */
export function listJournal(
  database: Queryable,
  { before, limit }: { readonly before: JournalPlace | undefined; readonly limit: number },
): Promise<Listed[]> {
  const older =
    before === undefined
      ? sql`true`
      : sql`(created_at_ms, id) < (${before.at}::int8, ${before.id}::text)`
  return database.query<Listed>(sql`
    SELECT id, network, signer, nonce, hash, earlier_hashes, state, block_number, created_at_ms,
      CASE WHEN parts = '{}' THEN ARRAY[id] ELSE parts END AS names
    FROM operations.transaction_journal WHERE ${older} ORDER BY created_at_ms DESC, id DESC LIMIT ${limit}`)
}
