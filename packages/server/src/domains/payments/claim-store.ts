import type { Database, Queryable } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'

/**
 * A claim binds one payment to one request before any money moves. States:
 * claimed (settlement not known), settled (money arrived, nothing charged yet or charge on its way),
 * delivered (charged and answered), failed (can never move money to us, or did not when tried).
 */
export type ClaimState = 'claimed' | 'settled' | 'delivered' | 'failed'

export type Claim = {
  readonly id: string
  /** Names the payment for ever: network, asset, payer and nonce. */
  readonly identity: string
  readonly request_hash: string
  readonly app: string
  readonly operation: string
  /** Atomic units: what the payment moves. */
  readonly amount: bigint
  readonly quote_id: string | null
  readonly rule_version: number
  /** Unix seconds after which the payment can no longer be settled. */
  readonly valid_before: bigint
  /** The payment as it was read, for reconciliation. */
  readonly payment: string
  readonly state: ClaimState
  readonly reason: string | null
  /** The settling transaction. */
  readonly settled_by: string | null
  /** Height of the application's chain before a paid write was first tried. */
  readonly write_after: bigint | null
  readonly created_at_ms: bigint
}

const claims = sql.id('operations', 'claim')
const replies = sql.id('operations', 'kept_reply')

export function paymentTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${claims} (
      identity text NOT NULL, id text NOT NULL, request_hash text NOT NULL, app text NOT NULL, operation text NOT NULL,
      amount numeric NOT NULL, quote_id text, rule_version int8 NOT NULL, valid_before numeric NOT NULL,
      payment text NOT NULL, state text NOT NULL, reason text, settled_by text, write_after int8,
      created_at_ms int8 NOT NULL, CONSTRAINT claim_pkey PRIMARY KEY (identity))`,
    sql`CREATE UNIQUE INDEX claim_id ON ${claims} (id)`,
    sql`CREATE INDEX claim_open ON ${claims} (created_at_ms) WHERE state = 'claimed'`,
    sql`CREATE TABLE ${replies} (
      payment_id text NOT NULL, status int4 NOT NULL, body bytea NOT NULL, sale text NOT NULL, expires_at_ms int8 NOT NULL,
      CONSTRAINT kept_reply_pkey PRIMARY KEY (payment_id))`,
    sql`CREATE INDEX kept_reply_expiry ON ${replies} (expires_at_ms)`,
  ]
}

type ClaimRow = Omit<Claim, 'amount' | 'valid_before' | 'rule_version'> & {
  readonly amount: string
  readonly valid_before: string
  readonly rule_version: bigint
}

const columns = sql`identity, id, request_hash, app, operation, amount, quote_id, rule_version, valid_before,
  payment, state, reason, settled_by, write_after, created_at_ms`

function claimOf(row: ClaimRow): Claim {
  return {
    ...row,
    amount: BigInt(row.amount),
    valid_before: BigInt(row.valid_before),
    rule_version: Number(row.rule_version),
  }
}

/** False where the payment is claimed already, or was settled in a life before these rows. */
export async function insertClaim(database: Queryable, claim: Claim): Promise<boolean> {
  const inserted = await database.execute(sql`
    INSERT INTO ${claims} (${columns})
    SELECT ${claim.identity}, ${claim.id}, ${claim.request_hash}, ${claim.app}, ${claim.operation},
      ${String(claim.amount)}::numeric, ${claim.quote_id}, ${claim.rule_version}::int8, ${String(claim.valid_before)}::numeric,
      ${claim.payment}, ${claim.state}, ${claim.reason}, ${claim.settled_by}, ${claim.write_after}::int8,
      ${claim.created_at_ms}::int8
    WHERE NOT EXISTS (SELECT 1 FROM ${sql.id('system', 'settled_payment')} AS settled WHERE settled.identity = ${claim.identity})
    ON CONFLICT (identity) DO NOTHING`)
  return inserted === 1
}

export async function findClaim(
  database: Queryable,
  by: { identity: string } | { id: string },
): Promise<Claim | undefined> {
  const where = 'identity' in by ? sql`identity = ${by.identity}` : sql`id = ${by.id}`
  const [row] = await database.query<ClaimRow>(sql`SELECT ${columns} FROM ${claims} WHERE ${where}`)
  return row && claimOf(row)
}

/** Claims whose settlement is not known and that are older than a moment ago. */
export async function openClaims(
  database: Queryable,
  bounds: { olderThanMs: number; limit: number },
): Promise<Claim[]> {
  const rows = await database.query<ClaimRow>(sql`
    SELECT ${columns} FROM ${claims} WHERE state = 'claimed' AND created_at_ms < ${bounds.olderThanMs}
    ORDER BY created_at_ms LIMIT ${bounds.limit}`)
  return rows.map(claimOf)
}

export async function setClaim(
  database: Queryable,
  id: string,
  change: { state: ClaimState; reason?: string; settledBy?: string },
): Promise<void> {
  await database.execute(sql`
    UPDATE ${claims} SET state = ${change.state}, reason = ${change.reason ?? null},
      settled_by = coalesce(${change.settledBy ?? null}, settled_by)
    WHERE id = ${id}`)
}

/** Notes how far the application's chain was before a paid write, so that a retry can find what was written. */
export async function setWriteAfter(
  database: Queryable,
  id: string,
  height: number,
): Promise<void> {
  await database.execute(
    sql`UPDATE ${claims} SET write_after = ${height} WHERE id = ${id} AND write_after IS NULL`,
  )
}

/** Whether another payment claims to have been settled by this transaction. */
export async function transactionTaken(
  database: Queryable,
  id: string,
  transaction: string,
): Promise<boolean> {
  const rows = await database.query(
    sql`SELECT id FROM ${claims} WHERE settled_by = ${transaction} AND id <> ${id} LIMIT 1`,
  )
  return rows.length > 0
}

export type KeptReply = { readonly status: number; readonly body: Buffer; readonly sale: string }

/** Keeps what was bought before it is charged, so that no crash can charge without an answer. */
export async function keepReply(
  database: Database,
  reply: KeptReply & { paymentId: string; settledBy: string; expiresAtMs: number },
): Promise<void> {
  await database.query(sql`
    WITH kept AS (
      INSERT INTO ${replies} (payment_id, status, body, sale, expires_at_ms)
      VALUES (${reply.paymentId}, ${reply.status}, ${reply.body}, ${reply.sale}, ${reply.expiresAtMs})
      ON CONFLICT (payment_id) DO NOTHING)
    UPDATE ${claims} SET state = 'settled', settled_by = ${reply.settledBy} WHERE id = ${reply.paymentId}`)
}

export async function findReply(
  database: Queryable,
  paymentId: string,
): Promise<KeptReply | undefined> {
  const [row] = await database.query<KeptReply>(
    sql`SELECT status, body, sale FROM ${replies} WHERE payment_id = ${paymentId}`,
  )
  return row
}

/** Drops kept replies of delivered payments that are past their time, or the oldest beyond the bound in bytes. */
export async function dropReplies(
  database: Queryable,
  bounds: { nowMs: number; bytesMax: number },
): Promise<void> {
  await database.execute(sql`
    DELETE FROM ${replies} WHERE payment_id IN (
      SELECT kept.payment_id FROM (
        SELECT payment_id, expires_at_ms, sum(octet_length(body)) OVER (ORDER BY expires_at_ms DESC, payment_id) AS total
        FROM ${replies}) AS kept
      JOIN ${claims} AS claim ON claim.id = kept.payment_id AND claim.state = 'delivered'
      WHERE kept.expires_at_ms < ${bounds.nowMs} OR kept.total > ${bounds.bytesMax})`)
}

export async function markDelivered(database: Queryable, ids: readonly string[]): Promise<void> {
  await database.execute(
    sql`UPDATE ${claims} SET state = 'delivered' WHERE id = ANY(${ids}::text[])`,
  )
}
