import { assert, requirePresent } from '../../../base/assert.ts'
import type { Queryable } from '../../../database/database.ts'
import { isUniqueViolation } from '../../../database/errors.ts'
import { type SqlStatement, sql } from '../../../database/sql.ts'
import { toPayerAccount } from '../../../projections/ledger-entry.ts'
import { printHoldDeletion, printHoldInsertion } from '../accounts/holds.ts'
import {
  type ClaimState,
  decideStep,
  hasTransaction,
  isHeld,
  isUntried,
  type PaymentEvent,
  type PaymentState,
} from './payment-states.ts'

/** A claim binds one payment to one request before any money moves; see payment-states.ts for what becomes of it. */
export type Claim = {
  readonly id: string
  /** Names the payment for ever: network, asset, payer and nonce. */
  readonly identity: string
  readonly request_hash: string
  readonly app: string
  readonly operation: string
  /** Atomic units: what the payment moves. */
  readonly amount: bigint
  /** Atomic units: the most that its request may be charged. */
  readonly cap: bigint
  /** For a transfer that the payer made, the name by which it is found before the chain is asked. */
  readonly transfer: string | null
  readonly quote_id: string | null
  /** The terms it was made under, as `encodeTerms` writes them; null for a mere deposit. */
  readonly terms: string | null
  /** Unix seconds after which the payment can no longer be settled. */
  readonly valid_before: bigint
  /** The payment as it was read: a retry must be the same, and reconciliation needs it. */
  readonly payment: string
  readonly state: ClaimState
  /** Why it failed. */
  readonly reason: string | null
  /** The transaction that moved its own money; null while it did not, as where a balance was charged instead. */
  readonly settled_by: string | null
  /** Height of the application's chain before a paid write was first tried, or up to which nothing was written since. */
  readonly write_after: bigint | null
  /**
   * The form by which a paid write is answered from the log, as `encodeWriteForm` writes it, with the times that it was
   * tried; null before that.
   */
  readonly write_form: string | null
  /** Its payer's name for it, by the extension payment-identifier; null once it failed, or its money is free. */
  readonly payment_identifier: string | null
  readonly created_at_ms: bigint
}

/**
 * The use that the money of a claim is kept for. Between two looks a claim may be given up and held anew, under other
 * terms or for less: its state is the same then, and what was made for the first use is not for the second.
 */
export type ClaimUse = Pick<Claim, 'request_hash' | 'terms' | 'cap'>

/** Returns true if both are claims for the same use. */
export function isSameUse(one: ClaimUse, other: ClaimUse): boolean {
  return (
    one.request_hash === other.request_hash && one.terms === other.terms && one.cap === other.cap
  )
}

/** The table of claims. */
export const claims = sql.id('operations', 'claim')

export type ClaimRow = Omit<Claim, 'amount' | 'cap' | 'valid_before'> & {
  readonly amount: string
  readonly cap: string
  readonly valid_before: string
}

const claimColumnNames = [
  ...[
    'identity',
    'id',
    'request_hash',
    'app',
    'operation',
    'amount',
    'cap',
    'transfer',
    'quote_id',
    'terms',
  ],
  ...[
    'valid_before',
    'payment',
    'state',
    'reason',
    'settled_by',
    'write_after',
    'write_form',
    'payment_identifier',
    'created_at_ms',
  ],
]
export const claimColumns = sql.join(claimColumnNames.map((name) => sql.id(name)))

export function toClaim(row: ClaimRow): Claim {
  assertForm(row)
  return {
    ...row,
    amount: BigInt(row.amount),
    cap: BigInt(row.cap),
    valid_before: BigInt(row.valid_before),
  }
}

/** The transaction of a claim is known in the states that say so, and not in those that say it is not. */
function assertForm({ id, state, settled_by }: Pick<Claim, 'id' | 'state' | 'settled_by'>): void {
  const names = hasTransaction(state)
  assert(
    names === undefined || names === (settled_by !== null),
    `the state of ${id}, ${state}, fits its money`,
  )
}

/** The payer's account, and what is held on it for a claim. */
const heldPart = sql`id, CASE WHEN split_part(identity, '/', 3) ~ '^(app|channel):' THEN '' ELSE 'wallet:' END
  || split_part(identity, '/', 3) AS account, cap AS amount,
  terms::jsonb -> 'budget' ->> 'id' AS budget, terms::jsonb -> 'budget' ->> 'day' AS budget_day`

/** Reads the account that a claim may be charged to. */
export function getPayerAccount({ identity }: Pick<Claim, 'identity'>): string {
  return toPayerAccount(identity.split('/')[2] ?? '')
}

/**
 * Reads the account that quotas, tiers and passes count for. That of a channel is its payer's wallet, where this has
 * signed something: a channel that somebody else opened in its name counts for itself.
 */
export function getBuyerAccount(claim: Pick<Claim, 'identity' | 'payment'>): string {
  const account = getPayerAccount(claim)
  if (!account.startsWith('channel:')) return account
  const sent: { readonly channel?: { readonly payer: string; readonly isByOther?: true } } =
    JSON.parse(claim.payment)
  const { payer, isByOther } = requirePresent(sent.channel, 'the channel of a voucher')
  return isByOther === true ? account : toPayerAccount(payer)
}

/** The version of a row, which each change of it makes another one. */
export const claimVersion = sql`xmin::text AS version`

/** Claims a payment that nobody has; false where it is claimed already, or was settled in a life before these rows. */
export async function insertClaim(
  database: Queryable,
  claim: Claim,
  event: PaymentEvent,
): Promise<boolean> {
  return (await insertClaims(database, [claim], event)).has(claim.id)
}

/** The columns of a new claim with their types, as a statement takes them from JSON. */
const typedColumns = sql`identity text, id text, request_hash text, app text, operation text, amount numeric, cap numeric,
  transfer text, quote_id text, terms text, valid_before numeric, payment text, state text, reason text, settled_by text,
  write_after int8, write_form text, payment_identifier text, created_at_ms int8, sweep int4`

/**
 * The same for claims of one state, by one statement; returns, by their ids, the versions of those that were not claimed
 * before, and whose name no other claim has.
 */
export async function insertClaims(
  database: Queryable,
  fresh: readonly Claim[],
  event: PaymentEvent,
): Promise<ReadonlyMap<string, string>> {
  const { to } = decideStep('none', event)
  for (const claim of fresh) {
    assert(to === claim.state, `what is ${event} is not ${claim.state}`)
    assertForm(claim)
  }
  const insert = sql`
    INSERT INTO ${claims} (${claimColumns}, sweep)
    SELECT ${claimColumns}, sweep FROM ${printRows(fresh)} AS fresh (${typedColumns})
    WHERE ${isNew} ON CONFLICT DO NOTHING`
  const made = await database.query<{ id: string; version: string }>(
    isHeld(to)
      ? sql`WITH made AS (${insert} RETURNING ${heldPart}, ${claimVersion}), hold AS (${printHoldInsertion(sql`made`)}) SELECT id, version FROM made`
      : sql`${insert} RETURNING id, ${claimVersion}`,
  )
  return new Map(made.map((one) => [one.id, one.version]))
}

/**
 * Prints, as a part of a WITH, what inserts claims that were covered, answered and charged in one commit. One that is
 * claimed already is refused by its key; one that was settled in a life before these rows gets no state, which its column
 * refuses.
 */
export function printSoldClaims(sold: readonly Claim[]): SqlStatement {
  const to = (['covered', 'served', 'charged'] as const).reduce(
    (state: PaymentState, event) => decideStep(state, event).to,
    'none',
  )
  for (const claim of sold) {
    assert(to === claim.state, `what is charged at once is not ${claim.state}`)
    assertForm(claim)
  }
  return sql`sold AS (
    INSERT INTO ${claims} (${claimColumns}, sweep)
    SELECT ${claimColumns}, sweep FROM (
      SELECT ${sql.join(claimColumnNames.map((name) => (name === 'state' ? sql`CASE WHEN ${isNew} THEN state END AS state` : sql.id(name))))}, sweep
      FROM ${printRows(sold)} AS fresh (${typedColumns})) AS one)`
}

/** Rows of `fresh` whose payment no ledger has. Each is looked up by itself, whatever the planner takes the tables for. */
const isNew = sql`(SELECT settled.identity FROM ${sql.id('system', 'settled_payment')} AS settled WHERE settled.identity = fresh.identity) IS NULL
  AND (SELECT sale.identity FROM ${sql.id('system', 'sale')} AS sale WHERE sale.identity = fresh.identity) IS NULL`

/** Prints the rows of claims as the columns of `typedColumns`. */
function printRows(fresh: readonly Claim[]): SqlStatement {
  const rows = fresh.map((claim) => ({
    ...claim,
    amount: String(claim.amount),
    cap: String(claim.cap),
    valid_before: String(claim.valid_before),
    write_after: claim.write_after === null ? null : String(claim.write_after),
    created_at_ms: String(claim.created_at_ms),
    sweep: isSweepable(claim) ? 0 : null,
  }))
  return sql`json_to_recordset(${JSON.stringify(rows)}::json)`
}

export async function findClaim(
  database: Queryable,
  by: { identity: string } | { id: string } | { transfer: string },
): Promise<Claim | undefined> {
  const where =
    'identity' in by
      ? sql`identity = ${by.identity}`
      : 'id' in by
        ? sql`id = ${by.id}`
        : sql`transfer = ${by.transfer} ORDER BY created_at_ms DESC, id LIMIT 1`
  const [row] = await database.query<ClaimRow>(
    sql`SELECT ${claimColumns} FROM ${claims} WHERE ${where}`,
  )
  return row && toClaim(row)
}

/**
 * Finds the claims of these payments, by one statement. Each is looked up by itself: a plan for all of them, made while
 * there are few, would read all claims for as long as nobody tells the planner of more.
 */
export async function findClaims(
  database: Queryable,
  identities: readonly string[],
): Promise<(Claim | undefined)[]> {
  const rows = await database.query<ClaimRow>(
    sql`SELECT claim.* FROM unnest(${[...new Set(identities)]}::text[]) AS asked (identity)
      CROSS JOIN LATERAL (SELECT ${claimColumns} FROM ${claims} AS one WHERE one.identity = asked.identity LIMIT 1) AS claim`,
  )
  const known = new Map(rows.map((row) => [row.identity, toClaim(row)]))
  return identities.map((identity) => known.get(identity))
}

/** A quote's own address is only passed through; a transfer without a quote came to the network's own. */
function isSweepable({ transfer, quote_id }: Claim): boolean {
  return transfer !== null && quote_id !== null
}

/** Values that a claim gets together with its next state. */
export type ClaimFacts = {
  /** Why it failed. */
  readonly reason?: string
  readonly settledBy?: string
  /** The height of its application's chain up to which nothing was written for it. */
  readonly writeAfter?: number
  /** The use of it from now on; what another one has written, in another application's log perhaps, is not looked for. */
  readonly use?: Pick<
    Claim,
    'request_hash' | 'app' | 'operation' | 'quote_id' | 'terms' | 'cap' | 'payment_identifier'
  >
}

/**
 * Moves claims from the state they are known to be in to the next one, and returns the ids of those that were in it:
 * any other was moved by somebody else first. The hold of a claim changes with its state.
 */
export async function updateStates(
  database: Queryable,
  known: {
    readonly ids: readonly string[]
    readonly state: ClaimState
    readonly event: PaymentEvent
    /** Where it is given, a claim whose write was tried meanwhile, once more or for the first time, counts as moved, too. */
    readonly writeForm?: string | null
    /** Where it is given, a claim that was changed or joined since counts as moved, too. */
    readonly version?: string
  },
  facts: ClaimFacts = {},
): Promise<string[]> {
  const { to } = decideStep(known.state, known.event)
  const { reason = null, settledBy, writeAfter, use } = facts
  const changes = [
    sql`state = ${to}, reason = ${isUntried(to) ? reason : null}, next_look_ms = NULL`,
    ...(settledBy === undefined ? [] : [sql`settled_by = ${noteTransaction(known, settledBy)}`]),
    ...(writeAfter === undefined ? [] : [sql`write_after = ${writeAfter}::int8`]),
    ...(use === undefined
      ? []
      : [
          sql`request_hash = ${use.request_hash}, app = ${use.app}, operation = ${use.operation},
            quote_id = ${use.quote_id}, terms = ${use.terms}, cap = ${String(use.cap)}::numeric,
            write_after = CASE request_hash WHEN ${use.request_hash} THEN write_after END,
            write_form = CASE request_hash WHEN ${use.request_hash} THEN write_form END`,
        ]),
    ...printNameChange(known.state, to, use?.payment_identifier),
  ]
  const tried = [
    known.writeForm === undefined
      ? sql.empty
      : sql`AND write_form IS NOT DISTINCT FROM ${known.writeForm}::text`,
    known.version === undefined ? sql.empty : sql`AND xmin::text = ${known.version}`,
  ]
  const change = printHoldChange(known.state, to)
  const moved = await database.query<Pick<Claim, 'id' | 'state' | 'settled_by'>>(sql`
    WITH moved AS (
      UPDATE ${claims} AS claim SET ${sql.join(changes, ', ')}
      WHERE id = ANY(${known.ids}::text[]) AND state = ${known.state} ${sql.join(tried, ' ')} ${printIsNameFree(use?.payment_identifier)} RETURNING state, settled_by, ${change === undefined ? sql`id` : heldPart})
      ${change === undefined ? sql.empty : sql`, hold AS (${change})`}
    SELECT id, state, settled_by FROM moved`)
  return moved.map((row) => {
    assertForm(row)
    return row.id
  })
}

/**
 * One claim at most has a name (the index `claim_name`). It gives the name up once it failed, or its money is free on the
 * balance. A named deposit keeps it, for that money is what it was for.
 */
function printNameChange(
  from: ClaimState,
  to: ClaimState,
  identifier: string | null | undefined,
): SqlStatement[] {
  if (to === 'failed' || to === 'void') return [sql`payment_identifier = NULL`]
  // An answered claim passes through this state while it is compared with the ledger.
  if (to === 'deposited' && from !== 'answered')
    return [
      sql`payment_identifier = CASE WHEN operation = 'deposit' AND terms IS NOT NULL THEN payment_identifier END`,
    ]
  return identifier === undefined ? [] : [sql`payment_identifier = ${identifier}::text`]
}

function printIsNameFree(identifier: string | null | undefined): SqlStatement {
  if (identifier === undefined || identifier === null) return sql.empty
  return sql`AND NOT EXISTS (SELECT 1 FROM ${claims} AS other WHERE other.payment_identifier = ${identifier}
    AND split_part(other.identity, '/', 3) = split_part(claim.identity, '/', 3) AND other.id <> claim.id)`
}

/** The transaction that is booked counts; of those that are yet to be, the first that was seen. */
function noteTransaction({ event }: { event: PaymentEvent }, settledBy: string): SqlStatement {
  return event === 'reserved' ? sql`coalesce(settled_by, ${settledBy}::text)` : sql`${settledBy}`
}

/** A hold is there from the state that begins it to the one that ends it. */
function printHoldChange(from: ClaimState, to: ClaimState): SqlStatement | undefined {
  if (isHeld(from) === isHeld(to)) return undefined
  return isHeld(to) ? printHoldInsertion(sql`moved`) : printHoldDeletion(sql`moved`)
}

/**
 * Takes a transaction that a facilitator reported, without a look at the chain, as the one that settled this
 * payment. False where it was reported for another payment: such a transaction can stand for one payment only.
 */
export async function takeTransaction(
  database: Queryable,
  id: string,
  transaction: string,
): Promise<boolean> {
  try {
    await database.execute(
      sql`UPDATE ${claims} SET told_transaction = ${transaction} WHERE id = ${id}`,
    )
    return true
  } catch (error) {
    if (isUniqueViolation(error)) return false
    throw error
  }
}

/**
 * Notes how far the application's chain was before a paid write, so that it can be found and answered later. False where
 * the claim's money is not kept for this use any more: nothing may be written then. Own money that came stays kept
 * when it becomes a hold; a hold that was given back is not kept by asking for own money, which may never come. Each note
 * is another text: who has found that nothing was written ends a hold only where nobody has tried again since.
 */
export async function setWriteAfter(
  database: Queryable,
  { id, request_hash: hash, terms, cap, state }: Pick<Claim, 'id' | 'state'> & ClaimUse,
  { height, form }: { readonly height: number; readonly form: string },
): Promise<boolean> {
  const keeping = isHeld(state) ? ['held'] : ['claimed', 'held']
  const noted = await database.execute(sql`
    UPDATE ${claims} SET write_after = coalesce(write_after, ${height}::int8),
      write_form = (${form}::jsonb || jsonb_build_object('tries', coalesce((write_form::jsonb ->> 'tries')::int4, 0) + 1))::text
    WHERE id = ${id} AND state = ANY(${keeping}::text[])
      AND request_hash = ${hash} AND terms IS NOT DISTINCT FROM ${terms}::text AND cap = ${String(cap)}::numeric`)
  return noted === 1
}
