import { type SqlStatement, sql } from '../../../database/sql.ts'
import { claims } from './claim-store.ts'
import { replies, soldFile } from './reply-store.ts'

export function buildPaymentTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${claims} (
      identity text NOT NULL, id text NOT NULL, request_hash text NOT NULL, app text NOT NULL, operation text NOT NULL,
      amount numeric NOT NULL, cap numeric NOT NULL, transfer text, sweep int4, quote_id text, rule_version int8 NOT NULL, valid_before numeric NOT NULL,
      payment text NOT NULL, state text NOT NULL, reason text, is_final bool NOT NULL DEFAULT false,
      settled_by text, told_transaction text, write_after int8,
      created_at_ms int8 NOT NULL, CONSTRAINT claim_pkey PRIMARY KEY (identity))`,
    sql`CREATE UNIQUE INDEX claim_id ON ${claims} (id)`,
    sql`CREATE INDEX claim_transfer ON ${claims} (transfer) WHERE transfer IS NOT NULL`,
    sql`CREATE INDEX claim_sweep ON ${claims} (created_at_ms, id) WHERE sweep IS NOT NULL`,
    sql`CREATE UNIQUE INDEX claim_told ON ${claims} (told_transaction)`,
    sql`CREATE INDEX claim_open ON ${claims} (created_at_ms, id) WHERE state = 'claimed'`,
    sql`CREATE INDEX claim_failed ON ${claims} (valid_before, id) WHERE state = 'failed' AND NOT is_final`,
    sql`CREATE TABLE ${replies} (
      payment_id text NOT NULL, status int4 NOT NULL, body bytea NOT NULL, sale text NOT NULL, expires_at_ms int8 NOT NULL,
      CONSTRAINT kept_reply_pkey PRIMARY KEY (payment_id))`,
    sql`CREATE INDEX kept_reply_expiry ON ${replies} (expires_at_ms)`,
  ]
}

/** Answers are of several types: CSV and NDJSON of predefined queries. */
export function buildReplyTypeColumn(): SqlStatement[] {
  return [sql`ALTER TABLE ${replies} ADD COLUMN content_type text`]
}

/** Claims keep their terms, in place of a version of the price rules that a process may have forgotten. */
export function buildClaimTermsColumn(): SqlStatement[] {
  return [sql`ALTER TABLE ${claims} DROP COLUMN rule_version, ADD COLUMN terms text`]
}

/**
 * Every state has a name of its own, in place of one that had to be read together with `is_final` and `settled_by`.
 */
export function buildClaimStates(): SqlStatement[] {
  return [
    sql`UPDATE ${claims} SET state = 'answered', reason = NULL
      WHERE state IN ('claimed', 'failed') AND settled_by IS NOT NULL`,
    sql`UPDATE ${claims} SET state = 'void' WHERE state = 'failed' AND is_final`,
    sql`DROP INDEX operations.claim_open`,
    sql`DROP INDEX operations.claim_failed`,
    sql`ALTER TABLE ${claims} DROP COLUMN is_final, ADD CONSTRAINT claim_state CHECK (
      CASE WHEN settled_by IS NULL THEN state IN ('claimed', 'failed', 'void')
      ELSE state IN ('answered', 'settled', 'delivered') END)`,
    sql`CREATE INDEX claim_open ON ${claims} (created_at_ms, id) WHERE state IN ('claimed', 'answered')`,
    sql`CREATE INDEX claim_failed ON ${claims} (valid_before, id) WHERE state = 'failed'`,
  ]
}

/** A list of an application's payments by time. */
export function buildClaimListIndex(): SqlStatement[] {
  return [sql`CREATE INDEX claim_app ON ${claims} (app, created_at_ms, id)`]
}

/**
 * Balances are charged by claims of which no money of their own came: `held` and `owed` before the sale is booked,
 * `sold` after it.
 */
export function buildBalanceStates(): SqlStatement[] {
  return [
    sql`DROP INDEX operations.claim_open`,
    sql`DROP INDEX operations.claim_failed`,
    sql`ALTER TABLE ${claims} DROP CONSTRAINT claim_state, ADD CONSTRAINT claim_state CHECK (
      CASE WHEN settled_by IS NULL THEN state IN ('claimed', 'held', 'owed', 'sold', 'delivered', 'failed', 'void')
      ELSE state IN ('held', 'owed', 'answered', 'settled', 'sold', 'delivered') END)`,
    sql`CREATE INDEX claim_open ON ${claims} (created_at_ms, id) WHERE state IN ('claimed', 'held', 'owed', 'answered')`,
    sql`CREATE INDEX claim_ended ON ${claims} (valid_before, id) WHERE state IN ('failed', 'sold')`,
  ]
}

/** The state of a claim whose money is on its payer's balance is named by that; settled is what a transfer is. */
export function buildDepositedState(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${claims} DROP CONSTRAINT claim_state`,
    sql`UPDATE ${claims} SET state = 'deposited' WHERE state = 'settled'`,
    sql`ALTER TABLE ${claims} ADD CONSTRAINT claim_state CHECK (
      CASE WHEN settled_by IS NULL THEN state IN ('claimed', 'held', 'owed', 'sold', 'delivered', 'failed', 'void')
      ELSE state IN ('held', 'owed', 'answered', 'deposited', 'sold', 'delivered') END)`,
  ]
}

/** A claim may have its answer before its money is asked for; that of each is known at its end. */
export function buildReadyState(): SqlStatement[] {
  return [
    sql`DROP INDEX operations.claim_open`,
    sql`DROP INDEX operations.claim_ended`,
    sql`ALTER TABLE ${claims} DROP CONSTRAINT claim_state, ADD CONSTRAINT claim_state CHECK (
      CASE WHEN settled_by IS NULL THEN state IN ('claimed', 'ready', 'held', 'owed', 'sold', 'delivered', 'failed', 'void')
      ELSE state IN ('held', 'owed', 'answered', 'deposited', 'sold', 'delivered') END)`,
    sql`CREATE INDEX claim_open ON ${claims} (created_at_ms, id) WHERE state IN ('claimed', 'ready', 'held', 'owed', 'answered')`,
    sql`CREATE INDEX claim_ended ON ${claims} (valid_before, id) WHERE state IN ('ready', 'failed', 'sold')`,
  ]
}

/** The payments to sellers' own wallets whose money may still come, by their payers. */
export function buildReadyIndex(): SqlStatement[] {
  return [sql`CREATE INDEX claim_ready ON ${claims} (identity) WHERE state = 'ready'`]
}

/** The payments of a payer whose money may still come. */
export function buildUnderWayIndex(): SqlStatement[] {
  return [
    sql`DROP INDEX operations.claim_ready`,
    sql`CREATE INDEX claim_under_way ON ${claims} (identity) WHERE state IN ('claimed', 'ready')`,
  ]
}

/** A list of a payer's payments by time. */
export function buildClaimPayerIndex(): SqlStatement[] {
  return [
    sql`CREATE INDEX claim_payer ON ${claims} (split_part(identity, '/', 3), created_at_ms, id)`,
  ]
}

/** One claim of a payer at most has a name: what failed, or is only a balance, gives it up. */
export function buildNameIndex(): SqlStatement[] {
  const payer = sql`split_part(identity, '/', 3)`
  return [
    sql`UPDATE ${claims} SET payment_identifier = NULL WHERE payment_identifier IS NOT NULL AND (state IN ('failed', 'void')
      OR (state = 'deposited' AND (operation <> 'deposit' OR terms IS NULL)) OR payment::jsonb ? 'upto')`,
    sql`UPDATE ${claims} AS claim SET payment_identifier = NULL WHERE EXISTS (
      SELECT 1 FROM ${claims} AS other WHERE other.payment_identifier = claim.payment_identifier
        AND split_part(other.identity, '/', 3) = split_part(claim.identity, '/', 3)
        AND (other.created_at_ms, other.id) < (claim.created_at_ms, claim.id))`,
    sql`DROP INDEX operations.claim_named`,
    sql`CREATE UNIQUE INDEX claim_name ON ${claims} (payment_identifier, ${payer}) WHERE payment_identifier IS NOT NULL`,
  ]
}

/** The name that a payer gave to a payment finds it again, whatever pays for its request the next time. */
export function buildPaymentIdentifierColumn(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${claims} ADD COLUMN payment_identifier text`,
    sql`CREATE INDEX claim_named ON ${claims} (payment_identifier, split_part(identity, '/', 3))
      WHERE payment_identifier IS NOT NULL`,
  ]
}

/** Null where a payment is looked at in each round; see rare-looks.ts. */
export function buildNextLookColumn(): SqlStatement[] {
  return [
    sql`ALTER TABLE ${claims} ADD COLUMN next_look_ms int8`,
    sql`CREATE INDEX claim_next_look ON ${claims} (next_look_ms) WHERE next_look_ms IS NOT NULL`,
  ]
}

/**
 * A sale writes only what somebody looks up: few claims are told a transaction, a payment without money of its own never
 * ends, and replies are dropped by a look at all of them. An answer that is kept in the commit of its sale has no copy of
 * the entry.
 */
export function buildNarrowSales(): SqlStatement[] {
  return [
    sql`DROP INDEX operations.claim_told`,
    sql`CREATE UNIQUE INDEX claim_told ON ${claims} (told_transaction) WHERE told_transaction IS NOT NULL`,
    sql`DROP INDEX operations.claim_ended`,
    sql`CREATE INDEX claim_ended ON ${claims} (valid_before, id)
      WHERE state IN ('ready', 'failed', 'sold') AND valid_before < 1000000000000000`,
    sql`DROP INDEX operations.kept_reply_expiry`,
    sql`ALTER TABLE ${replies} ALTER COLUMN sale DROP NOT NULL`,
  ]
}

/**
 * The sources of a kept answer, divided by spaces, so that it is dropped when a person in one of them is erased. Null
 * where it was kept before its sources were noted.
 */
export function buildReplySourcesColumn(): SqlStatement[] {
  return [sql`ALTER TABLE ${replies} ADD COLUMN sources text`]
}

/** A paid write can be answered and charged without its request. */
export function buildWriteFormColumn(): SqlStatement[] {
  return [sql`ALTER TABLE ${claims} ADD COLUMN write_form text`]
}

/** The removal of files asks which of them were sold, for many at once. */
export function buildSoldFileIndex(): SqlStatement[] {
  const { isSold, folder, sha256 } = soldFile
  return [
    sql`CREATE INDEX kept_reply_file ON ${replies} ((${folder}), (${sha256})) WHERE ${isSold}`,
  ]
}
