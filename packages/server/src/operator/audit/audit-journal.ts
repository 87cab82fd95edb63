import type { Database } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { encodeHex, hashKeccak } from '../../x402/hex.ts'
import { parseTransaction } from '../../x402/transaction.ts'
import { findProblemOfAnchor } from './audit-anchors.ts'
import { findFirst } from './audit-operations.ts'

type Difference = Readonly<Record<string, unknown>>

/** Audits the journal of signed transactions, and the notes of the networks that they are for. */
export async function auditJournal(database: Database): Promise<Difference | undefined> {
  const journal = 'operations.transaction_journal'
  return (
    (await findFirst(database, journal, checkJournal)) ??
    (await auditBytes(database)) ??
    (await findFirst(database, journal, checkJournalStates)) ??
    findFirst(database, 'operations.network_pin', checkPins)
  )
}

/** A transaction is signed for a claim, once more for one that a reorganisation took back, to sweep its money, for a transfer of ours, a channel, an anchor, or a publication. */
const checkJournal = sql`
  SELECT journal.id AS row, 'id' AS field, 'a claim, a transfer, a channel, an anchor or a publication' AS expected, 'none' AS found
  FROM operations.transaction_journal AS journal LEFT JOIN operations.claim AS claim
    ON claim.id = regexp_replace(journal.id, '^(?:sweep|again):(pay_[0-9a-f]+)(:[0-9]+)?$', '\\1')
  LEFT JOIN operations.outgoing_transfer AS sent
    ON sent.id = regexp_replace(journal.id, '^transfer:([^:]+)(:[0-9]+)?$', '\\1')
  WHERE claim.id IS NULL AND sent.id IS NULL AND journal.id !~ '^(anchors?|publish|channel-(deposit|claim|settle|refund)):' ORDER BY 1 LIMIT 1`

/**
 * A transaction is in a block where it is mined or reverted; what settled a payment, or paid a transfer, did not fail,
 * unless a reorganisation has taken it back: then it was sent again, or its payment was reversed, or is held for that.
 */
const checkJournalStates = sql`
  SELECT journal.id AS row, field, expected, found
  FROM operations.transaction_journal AS journal LEFT JOIN operations.claim AS claim ON claim.id = journal.id
    AND NOT EXISTS (SELECT 1 FROM system.reversal AS taken WHERE taken.payment_id = claim.id)
    AND NOT EXISTS (SELECT 1 FROM operations.account_hold AS hold WHERE hold.id = 'reversal_' || claim.id)
    AND NOT EXISTS (SELECT 1 FROM operations.transaction_journal AS later WHERE later.id = 'again:' || claim.id)
  LEFT JOIN operations.outgoing_transfer AS sent ON journal.id LIKE 'transfer:%' AND sent.state = 'paid'
    AND sent.transaction = ANY(journal.hash || journal.earlier_hashes),
  LATERAL (VALUES
    ('block_number', CASE WHEN journal.state IN ('mined', 'reverted') THEN coalesce(block_number::text, 'a block') END, block_number::text),
    ('state', CASE WHEN (claim.settled_by = ANY(journal.hash || journal.earlier_hashes) OR sent.id IS NOT NULL)
      AND journal.state IN ('reverted', 'replaced') THEN 'mined' ELSE journal.state END, journal.state),
    ('replaced_at_ms', cardinality(earlier_hashes) || ' times', cardinality(replaced_at_ms) || ' times'),
    ('earlier_raws', CASE WHEN cardinality(earlier_raws) > cardinality(earlier_hashes) THEN cardinality(earlier_hashes) || ' or fewer' END,
      CASE WHEN cardinality(earlier_raws) > cardinality(earlier_hashes) THEN cardinality(earlier_raws)::text END)
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
}

/** Checks that the bytes of each transaction have its hash, its nonce and its network, those that were replaced, too. */
async function auditBytes(database: Database): Promise<Difference | undefined> {
  for (let after = ''; ; ) {
    const rows = await database.query<JournalRow>(sql`
      SELECT id, network, nonce, raw, hash, earlier_raws, earlier_hashes
      FROM operations.transaction_journal WHERE id > ${after} ORDER BY id LIMIT ${pageRows}`)
    for (const row of rows) {
      const { earlier_raws: raws, earlier_hashes: hashes } = row
      const all = [...raws.map((raw, at) => ({ ...row, raw, hash: hashes[at] ?? '' })), row]
      const problem = all.map(findProblemOfBytes).find((found) => found !== undefined)
      if (problem !== undefined)
        return { what: 'table operations.transaction_journal', row: row.id, ...problem }
    }
    const last = rows.at(-1)
    if (last === undefined) return undefined
    after = last.id
  }
}

function findProblemOfBytes({ id, network, nonce, raw, hash }: JournalRow): Difference | undefined {
  const made = encodeHex(hashKeccak(raw))
  if (made !== hash) return { field: 'hash', expected: made, found: hash }
  const signed = parseTransaction(raw)
  if (network !== `eip155:${signed.chainId}`)
    return { field: 'network', expected: `eip155:${signed.chainId}`, found: network }
  if (signed.nonce !== nonce)
    return { field: 'nonce', expected: String(signed.nonce), found: String(nonce) }
  const problem = /^anchors?:/.test(id) ? findProblemOfAnchor(id, raw) : undefined
  return problem && { field: 'raw', ...problem }
}
