import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { encodeHex, hashKeccak } from '../../x402/hex.ts'
import { type Call, multicallAddress, parseJointCalls } from '../../x402/joint.ts'
import { parseTransaction, type Transaction } from '../../x402/transaction.ts'
import { findProblemOfAnchor } from './audit-anchors.ts'
import { type AskedFor, findProblemOfCall, readAskedFor } from './audit-signed-calls.ts'
import { findWrongRow } from './find-wrong-row.ts'

type Difference = Readonly<Record<string, unknown>>

/** Audits the journal of signed transactions, and the notes of the networks that they are for. */
export async function auditJournal(database: Database): Promise<Difference | undefined> {
  const journal = 'operations.transaction_journal'
  return (
    (await findWrongRow(database, journal, checkJournal)) ??
    (await auditBytes(database)) ??
    (await findWrongRow(database, journal, checkJournalStates)) ??
    (await findWrongRow(database, 'operations.taken_back', checkTakenBack)) ??
    findWrongRow(database, 'operations.network_pin', checkPins)
  )
}

/** Each transaction with the names of what it was signed for: the parts of a joint one, the id of any other. */
const named = sql`(SELECT journal.*, part FROM operations.transaction_journal AS journal
  CROSS JOIN LATERAL unnest(CASE WHEN parts = '{}' THEN ARRAY[id] ELSE parts END) AS part)`

/**
 * A transaction is signed for a claim, once more for one that a reorganisation took back, to sweep its money, for a
 * transfer of ours, a channel, a payment to somebody else, an anchor, or a publication.
 */
const checkJournal = sql`
  SELECT journal.id AS row, 'id' AS field, 'a claim, a transfer, a channel, a payment for others, an anchor or a publication' AS expected, 'none' AS found
  FROM ${named} AS journal LEFT JOIN operations.claim AS claim
    ON claim.id = regexp_replace(part, '^(?:sweep|again):(pay_[0-9a-f]+)(:[0-9]+)?$', '\\1')
  LEFT JOIN operations.outgoing_transfer AS sent
    ON sent.id = regexp_replace(part, '^transfer:([^:]+)(:[0-9]+)?$', '\\1')
  WHERE claim.id IS NULL AND sent.id IS NULL AND part !~ '^((anchors?|publish|channel-(deposit|claim|settle|refund)):|facilitated_)' ORDER BY 1 LIMIT 1`

/** True where a chain took back the move of this id: it is sent again, has come by another transaction, or is reversed. */
const isTakenBack = (
  id: SqlStatement,
) => sql`(EXISTS (SELECT 1 FROM operations.taken_back AS gone WHERE gone.id = ${id})
  OR EXISTS (SELECT 1 FROM system.reversal AS gone WHERE gone.payment_id = ${id}))`

/**
 * A transaction is in a block where it is mined or reverted; what settled a payment, or paid a transfer, did not fail,
 * unless a reorganisation has taken it back.
 */
const checkJournalStates = sql`
  SELECT journal.id AS row, field, expected, found
  FROM ${named} AS journal
  LEFT JOIN operations.claim AS claim ON claim.id = part AND NOT ${isTakenBack(sql`claim.id`)}
  LEFT JOIN operations.outgoing_transfer AS sent ON part LIKE 'transfer:%' AND sent.state = 'paid'
    AND sent.transaction = ANY(journal.hash || journal.earlier_hashes) AND NOT ${isTakenBack(sql`sent.id`)},
  LATERAL (VALUES
    ('block_number', CASE WHEN journal.state IN ('mined', 'reverted') THEN coalesce(block_number::text, 'a block') END, block_number::text),
    ('state', CASE WHEN (claim.settled_by = ANY(journal.hash || journal.earlier_hashes) OR sent.id IS NOT NULL)
      AND journal.state IN ('reverted', 'replaced') THEN 'mined' ELSE journal.state END, journal.state),
    ('replaced_at_ms', cardinality(earlier_hashes) || ' times', cardinality(replaced_at_ms) || ' times'),
    ('earlier_raws', CASE WHEN cardinality(earlier_raws) > cardinality(earlier_hashes) THEN cardinality(earlier_hashes) || ' or fewer' END,
      CASE WHEN cardinality(earlier_raws) > cardinality(earlier_hashes) THEN cardinality(earlier_raws)::text END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/**
 * A row is of a payment whose money came, or of a transfer that was paid. A transaction that has it now is another
 * one than the one that is booked, and did not fail.
 */
const checkTakenBack = sql`
  SELECT gone.id AS row, field, expected, found FROM operations.taken_back AS gone
  LEFT JOIN operations.claim AS claim ON claim.id = gone.id AND claim.settled_by IS NOT NULL
  LEFT JOIN operations.outgoing_transfer AS sent ON sent.id = gone.id AND sent.state IN ('paid', 'returned')
  LEFT JOIN operations.transaction_journal AS journal ON gone.transaction = ANY(journal.hash || journal.earlier_hashes),
  LATERAL (VALUES
    ('id', coalesce(claim.id, sent.id, 'what is booked'), gone.id),
    ('transaction', CASE WHEN gone.transaction !~ '^0x[0-9a-f]{64}$' OR gone.transaction = coalesce(claim.settled_by, sent.transaction)
      OR journal.state IN ('reverted', 'replaced') THEN 'another transaction' ELSE gone.transaction END, gone.transaction)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/** Nothing is signed for a network before its genesis is noted. */
const checkPins = sql`
  SELECT network AS row, 'network' AS field, network AS expected, NULL AS found FROM operations.transaction_journal
  WHERE network NOT IN (SELECT pin.network FROM operations.network_pin AS pin) ORDER BY 1 LIMIT 1`

const pageRows = 2_000

type JournalRow = {
  readonly id: string
  readonly network: string
  readonly nonce: bigint
  readonly raw: Buffer
  readonly hash: string
  readonly earlier_raws: readonly Buffer[]
  readonly earlier_hashes: readonly string[]
  readonly parts: readonly string[]
}

/**
 * Checks that the bytes of each transaction have its hash, its nonce and its network, and make the calls that it was signed
 * for, those that were replaced, too.
 */
async function auditBytes(database: Database): Promise<Difference | undefined> {
  for (let after = ''; ; ) {
    const rows = await database.query<JournalRow>(sql`
      SELECT id, network, nonce, raw, hash, earlier_raws, earlier_hashes, parts
      FROM operations.transaction_journal WHERE id > ${after} ORDER BY id LIMIT ${pageRows}`)
    const asked = await readAskedFor(database, rows.flatMap(listNames))
    for (const row of rows) {
      const { earlier_raws: raws, earlier_hashes: hashes } = row
      const all = [...raws.map((raw, at) => ({ ...row, raw, hash: hashes[at] ?? '' })), row]
      const problem = all
        .map((one) => findProblemOfBytes(one, asked))
        .find((found) => found !== undefined)
      if (problem !== undefined)
        return { what: 'table operations.transaction_journal', row: row.id, ...problem }
    }
    const last = rows.at(-1)
    if (last === undefined) return undefined
    after = last.id
  }
}

function listNames({ id, parts }: Pick<JournalRow, 'id' | 'parts'>): readonly string[] {
  return parts.length > 0 ? parts : [id]
}

function findProblemOfBytes(row: JournalRow, asked: AskedFor): Difference | undefined {
  const { id, network, nonce, raw, hash } = row
  const made = encodeHex(hashKeccak(raw))
  if (made !== hash) return { field: 'hash', expected: made, found: hash }
  const signed = parseTransaction(raw)
  if (network !== `eip155:${signed.chainId}`)
    return { field: 'network', expected: `eip155:${signed.chainId}`, found: network }
  if (signed.nonce !== nonce)
    return { field: 'nonce', expected: String(signed.nonce), found: String(nonce) }
  const problem = /^anchors?:/.test(id) ? findProblemOfAnchor(id, raw) : undefined
  return problem ? { field: 'raw', ...problem } : findProblemOfCalls(row, signed, asked)
}

/** Compares the calls with the names of what was signed, one by one. */
function findProblemOfCalls(
  { id, network, parts }: JournalRow,
  signed: Transaction,
  asked: AskedFor,
): Difference | undefined {
  const joint = signed.to === multicallAddress ? (parseJointCalls(signed.data) ?? []) : []
  const named = id === `joint:${parts[0]}` ? parts.length : 0
  if (joint.length !== named || named !== new Set(parts).size)
    return {
      field: 'parts',
      expected: `${joint.length} parts`,
      found: `${id}: ${parts.join(' ')}`,
    }
  const calls: readonly Call[] = named === 0 ? [signed] : joint
  return listNames({ id, parts })
    .map((name, at) => findProblemOfCall(asked, { name, network, call: calls[at] ?? signed }))
    .find((problem) => problem !== undefined)
}
