import { BlockStore } from '../../chain/block-store.ts'
import type { Database } from '../../database/database.ts'
import { dropSchema } from '../../database/drop-schema.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import type { WriteForm } from '../../services/payments/quotes/write-answer-form.ts'
import { soldFileType } from '../../services/payments/replies/sold-file.ts'
import { contentTypes } from '../../services/queries/answer-format.ts'
import { encodeHex, hashKeccak } from '../../x402/hex.ts'
import { parseTransaction } from '../../x402/transaction.ts'
import { type ChainPlace, createScratch, replay } from '../maintenance.ts'
import { findProblemOfAnchor } from './audit-anchors.ts'
import { findFirst } from './audit-operations.ts'

type Difference = Readonly<Record<string, unknown>>

/**
 * Audits the operational state that the service's own log also speaks of: claims, kept replies and the journal by
 * what they hold themselves and by the ledger, uses of keys by the keys. All of these are written once the log has
 * what they say, and its tables may follow later, so they are compared with the whole log.
 */
export async function auditPayments(
  database: Database,
  system: ChainPlace,
): Promise<Difference | undefined> {
  return runWithWholeLog(database, system, async (schema) => {
    const tables = {
      paid: sql.id(schema, 'settled_payment'),
      posting: sql.id(schema, 'posting'),
      sale: sql.id(schema, 'sale'),
      transfer: sql.id(schema, 'transfer'),
      key: sql.id(schema, 'api_key'),
      authorization: sql.id(schema, 'authorization'),
    }
    for (const [table, statement] of [
      ['operations.claim', checkClaims],
      ['operations.claim', compareDeposits(tables)],
      ['operations.claim', compareSales(tables)],
      ['operations.account_hold', checkHolds],
      ['operations.account_hold', checkFeeHolds],
      ['operations.account_hold', checkRefundHolds(tables)],
      ['operations.account_hold', checkStorageHolds],
      ['operations.account_hold', checkBlockHolds(tables)],
      ['operations.account_hold', checkChargedBlocks(tables)],
      ['operations.use_hold', checkUses(tables)],
      ['operations.kept_reply', checkReplies(tables)],
      ['operations.kept_reply', checkOwedReplies(tables)],
      ['operations.kept_reply', compareReplies(tables)],
      ['operations.transaction_journal', checkJournal],
      ['operations.outgoing_transfer', compareTransfers(tables)],
      ['operations.key_use', compareKeyUses(tables)],
    ] as const) {
      const found = await findFirst(database, table, statement)
      if (found !== undefined) return found
    }
    return (
      (await auditJournal(database)) ??
      (await findFirst(database, 'operations.transaction_journal', checkJournalStates)) ??
      findFirst(database, 'operations.network_pin', checkPins)
    )
  })
}

/** Tables of the service's own chain. */
type Tables = Readonly<
  Record<'paid' | 'posting' | 'sale' | 'transfer' | 'key' | 'authorization', SqlStatement>
>

/**
 * Runs the work on the schema whose tables hold the whole log: after a crash that is a replay, which is dropped
 * afterwards.
 */
async function runWithWholeLog<T>(
  database: Database,
  system: ChainPlace,
  work: (schema: string) => Promise<T>,
): Promise<T> {
  const store = new BlockStore(database, system.schema)
  const height = (await store.last())?.height ?? 0
  if ((await store.watermark()).height === height) return work(system.schema)
  const schema = `audit_${system.schema}`
  const projections = system.projections()
  try {
    await database.transaction((tx) => createScratch(tx, schema, projections))
    await replay(database, system, { schema, projections, height, progress: () => undefined })
    return await work(schema)
  } finally {
    await dropSchema(database, schema)
  }
}

/** Compares the columns of each claim with its payment. */
const checkClaims = sql`
  SELECT id AS row, field, expected, found
  FROM operations.claim, LATERAL (SELECT payment::jsonb AS sent) AS read, LATERAL (SELECT sent -> 'payload' AS payload) AS inner_read,
  LATERAL (VALUES
    ('identity', concat_ws('/', sent ->> 'network', split_part(identity, '/', 2), payload ->> 'from',
      CASE WHEN payload ? 'transaction' THEN concat(payload ->> 'transaction', ':', payload ->> 'logIndex') ELSE payload ->> 'nonce' END), identity),
    ('amount', payload ->> 'value', amount::text),
    ('valid_before', coalesce(payload ->> 'validBefore', payload ->> 'blockTime'), valid_before::text),
    ('cap', CASE WHEN cap < 0 OR cap > (terms::jsonb ->> 'amount')::numeric THEN concat('0 to ', terms::jsonb ->> 'amount') ELSE cap::text END, cap::text),
    ('reason', CASE WHEN state IN ('failed', 'void') THEN reason END, reason),
    ('sweep', CASE WHEN transfer IS NOT NULL THEN sweep::text END, sweep::text),
    ('settled_by', CASE WHEN settled_by !~ '^0x[0-9a-f]{64}$' THEN 'a transaction' ELSE settled_by END, settled_by),
    ('told_transaction', CASE WHEN told_transaction !~ '^0x[0-9a-f]{64}$' THEN 'a transaction'
      WHEN settled_by IS NULL THEN told_transaction WHEN told_transaction IS NOT NULL THEN settled_by END, told_transaction),
    ('payment_identifier', CASE WHEN payment_identifier IS NOT NULL THEN sent ->> 'identifier' END, payment_identifier),
    ('write_form', CASE WHEN write_after IS NOT NULL THEN write_form END, write_form),
    ('write_after', CASE WHEN write_form IS NOT NULL THEN coalesce(write_after::text, 'a height') ELSE write_after::text END, write_after::text),
    ('id', CASE WHEN id ~ '^pay_[0-9a-f]{32}$' THEN id ELSE 'the id of a payment' END, id)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY id LIMIT 1`

/**
 * Every booked deposit was claimed, with the values that were booked; every claim that counts as booked has a
 * deposit.
 */
const compareDeposits = (tables: Tables) => sql`
  SELECT coalesce(claim.id, paid.payment_id) AS row, field, expected, found
  FROM operations.claim AS claim FULL JOIN ${tables.paid} AS paid ON paid.identity = claim.identity
  LEFT JOIN ${tables.posting} AS booked ON booked.leaf = paid.leaf AND booked.amount > 0,
  LATERAL (VALUES
    ('state', CASE WHEN paid.identity IS NULL AND (claim.state = 'deposited'
      OR (claim.state = 'delivered' AND claim.settled_by IS NOT NULL)) THEN 'a deposit in the ledger' END, NULL),
    ('id', paid.payment_id, CASE WHEN paid.identity IS NOT NULL THEN claim.id END),
    ('settled_by', CASE WHEN claim.settled_by IS NOT NULL THEN paid.transaction END, CASE WHEN paid.identity IS NOT NULL THEN claim.settled_by END),
    ('amount', booked.amount::text, CASE WHEN paid.identity IS NOT NULL THEN claim.amount::text END),
    ('terms', regexp_replace(booked.account, concat('^held:(.*):', paid.payment_id, '$'), '\\1'), CASE WHEN paid.identity IS NOT NULL THEN
      CASE WHEN claim.operation = 'deposit' AND claim.terms IS NOT NULL
        THEN claim.terms::jsonb -> 'payees' -> 0 ->> 'account' ELSE 'wallet:' || split_part(claim.identity, '/', 3) END END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/** Every sale has a claim, with its values; every claim that counts as delivered has a sale. */
const compareSales = (tables: Tables) => sql`
  SELECT coalesce(claim.id, sale.payment_id) AS row, field, expected, found
  FROM operations.claim AS claim FULL JOIN ${tables.sale} AS sale ON sale.payment_id = claim.id,
  LATERAL (SELECT sale.body::jsonb AS sold) AS read,
  LATERAL (VALUES
    ('id', sale.payment_id, CASE WHEN sale.payment_id IS NOT NULL THEN claim.id END),
    ('state', CASE WHEN claim.state IN ('sold', 'delivered') AND sold IS NULL THEN 'a sale in the ledger' END, NULL),
    ('state', CASE WHEN sold IS NOT NULL AND claim.state IN ('claimed', 'ready', 'failed', 'void') THEN 'that of a sale' END,
      CASE WHEN sold IS NOT NULL AND claim.state IN ('claimed', 'ready', 'failed', 'void') THEN claim.state END),
    ('state', CASE WHEN claim.state = 'delivered' AND claim.settled_by IS NULL AND sold ->> 'paid_from' IS NULL THEN 'a sale from a balance' END, NULL),
    ('identity', sold ->> 'identity', CASE WHEN sold IS NOT NULL THEN claim.identity END),
    ('request_hash', sold ->> 'request_hash', CASE WHEN sold IS NOT NULL THEN claim.request_hash END),
    ('app', sold ->> 'app', CASE WHEN sold IS NOT NULL THEN claim.app END),
    ('operation', sold ->> 'operation', CASE WHEN sold IS NOT NULL THEN claim.operation END),
    ('amount', sold ->> 'deposited', CASE WHEN sold ? 'paid_from' THEN '0' WHEN sold IS NOT NULL THEN claim.amount::text END),
    ('quote_id', sold ->> 'quote_hash', CASE WHEN sold IS NOT NULL THEN encode(sha256(convert_to(claim.quote_id, 'UTF8')), 'hex') END),
    ('terms, payment, transfer and created_at_ms', sold ->> 'claim_hash', CASE WHEN sold ? 'claim_hash' THEN encode(sha256(convert_to(
      concat_ws(E'\\n', coalesce(claim.terms, ''), claim.payment, coalesce(claim.transfer, ''), claim.created_at_ms), 'UTF8')), 'hex') END),
    ('payment_identifier', CASE WHEN sold ? 'claim_hash' AND NOT claim.payment::jsonb ? 'upto' THEN claim.payment::jsonb ->> 'identifier' END,
      CASE WHEN sold ? 'claim_hash' THEN claim.payment_identifier END),
    ('cap', CASE WHEN claim.cap < (sold ->> 'amount')::numeric THEN sold ->> 'amount' END,
      CASE WHEN claim.cap < (sold ->> 'amount')::numeric THEN claim.cap::text END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/**
 * Every hold is of a claim in a state that has one, and is as much as that may be charged; every such claim has one.
 * Refunds and takeovers of channels have holds of their own, and so have blocks, fees for storage, and payments that go straight to their sellers.
 */
const checkHolds = sql`
  SELECT coalesce(hold.id, claim.id) AS row, field, expected, found
  FROM (SELECT * FROM operations.account_hold AS one WHERE id !~ '^(refund|channel|takeover|block|storage)_' AND NOT EXISTS (
    SELECT 1 FROM operations.claim AS claim WHERE claim.id = one.id AND one.account = 'app:' || claim.app
      AND claim.state IN ('ready', 'answered', 'delivered', 'void'))) AS hold
  FULL JOIN (SELECT * FROM operations.claim WHERE state IN ('held', 'owed')) AS claim ON claim.id = hold.id
  CROSS JOIN LATERAL (VALUES
    ('id', CASE WHEN claim.id IS NULL THEN 'a claim that is held' ELSE claim.id END, coalesce(hold.id, 'none')),
    ('account', CASE WHEN split_part(claim.identity, '/', 3) ~ '^(app|channel):' THEN '' ELSE 'wallet:' END || split_part(claim.identity, '/', 3),
      CASE WHEN claim.id IS NOT NULL THEN hold.account END),
    ('amount', claim.cap::text, CASE WHEN claim.id IS NOT NULL THEN hold.amount::text END),
    ('budget', claim.terms::jsonb -> 'budget' ->> 'id', CASE WHEN claim.id IS NOT NULL THEN hold.budget END),
    ('budget_day', claim.terms::jsonb -> 'budget' ->> 'day', CASE WHEN claim.id IS NOT NULL THEN hold.budget_day END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/**
 * The platform's share of a payment that goes straight to its seller is held on the seller's account, until its sale
 * takes it: as much as the sale that is kept will leave there less than before.
 */
const checkFeeHolds = sql`
  SELECT claim.id AS row, field, expected, found
  FROM operations.claim AS claim JOIN operations.kept_reply AS kept ON kept.payment_id = claim.id
  LEFT JOIN operations.account_hold AS hold ON hold.id = claim.id,
  LATERAL (SELECT kept.sale::jsonb AS due) AS read,
  LATERAL (SELECT coalesce(-sum((line ->> 'amount')::numeric), 0)::text AS owed FROM jsonb_array_elements(due -> 'postings') AS line
    WHERE line ->> 'account' = 'app:' || claim.app) AS share,
  LATERAL (VALUES
    ('amount', owed, coalesce(hold.amount, 0)::text),
    ('account', CASE WHEN hold.id IS NOT NULL THEN 'app:' || claim.app END, hold.account)
  ) AS said (field, expected, found)
  WHERE claim.state IN ('ready', 'answered') AND due ? 'paid_to' AND expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/** The amount that is held for a refund is of an application that has parts of its sale, and no more than these cost. */
const checkRefundHolds = (tables: Tables) => sql`
  SELECT hold.id AS row, field, expected, found FROM operations.account_hold AS hold
  LEFT JOIN ${tables.sale} AS sale ON sale.payment_id = 'pay_' || substr(hold.id, 8, 32)
  LEFT JOIN LATERAL (SELECT sum((part ->> 'gross')::numeric) AS gross FROM jsonb_array_elements(sale.body::jsonb -> 'sold') AS part
    WHERE part ->> 'account' = hold.account) AS sold ON true
  CROSS JOIN LATERAL (VALUES
    ('id', coalesce(sale.payment_id, 'a sale'), 'pay_' || substr(hold.id, 8, 32)),
    ('account', 'app:' || substr(hold.id, 41), hold.account),
    ('amount', CASE WHEN hold.amount <= sold.gross THEN hold.amount::text ELSE coalesce(sold.gross, 0) || ' or less' END, hold.amount::text)
  ) AS said (field, expected, found)
  WHERE hold.id LIKE 'refund\\_%' AND expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/** The amount that is held for a fee is on the account of the application that the fee names, and not below zero. */
const checkStorageHolds = sql`
  SELECT hold.id AS row, field, expected, found FROM operations.account_hold AS hold
  LEFT JOIN system.application AS application ON application.app_id = substring(hold.id FROM '^storage_[0-9]{4}-[0-9]{2}-[0-9]{2}_[0-9]+_[0-9]+_(.+)$')
  CROSS JOIN LATERAL (VALUES
    ('account', coalesce('app:' || application.app_id, 'that of an application'), hold.account),
    ('amount', CASE WHEN hold.amount < 0 THEN '0 or more' ELSE hold.amount::text END, hold.amount::text)
  ) AS said (field, expected, found)
  WHERE hold.id LIKE 'storage\\_%' AND expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/**
 * Charges to balances in blocks that the tables do not have yet are held: each by its payment's own hold, or, all others
 * of one account and budget together, by that of their block.
 */
const checkChargedBlocks = (tables: Tables) => sql`
  SELECT concat_ws(' ', due.height, due.account, due.budget, due.budget_day) AS row, 'amount' AS field, due.amount::text AS expected,
    coalesce(sum(hold.amount), 0)::text AS found
  FROM (SELECT posting.height, posting.account, sold ->> 'budget' AS budget, sold ->> 'budget_day' AS budget_day, sum(-posting.amount) AS amount
    FROM ${tables.posting} AS posting JOIN ${tables.sale} AS sale ON sale.leaf = posting.leaf,
    LATERAL (SELECT sale.body::jsonb AS sold) AS read
    WHERE posting.height > (SELECT reached.height FROM system.watermark AS reached WHERE reached.id = 1) AND posting.amount < 0
      AND sold ? 'paid_from' AND NOT EXISTS (SELECT 1 FROM operations.account_hold AS own WHERE own.id = sale.payment_id)
    GROUP BY 1, 2, 3, 4) AS due
  LEFT JOIN operations.account_hold AS hold ON hold.height = due.height AND hold.account = due.account
    AND hold.budget IS NOT DISTINCT FROM due.budget AND hold.budget_day IS NOT DISTINCT FROM due.budget_day
  GROUP BY due.height, due.account, due.budget, due.budget_day, due.amount
  HAVING due.amount <> coalesce(sum(hold.amount), 0) ORDER BY 1 LIMIT 1`

/** The amount that a block holds of an account is not more than its sales charged there, under the same budget. */
const checkBlockHolds = (tables: Tables) => sql`
  SELECT hold.id AS row, field, expected, found FROM operations.account_hold AS hold
  LEFT JOIN LATERAL (SELECT sum(-posting.amount) AS amount FROM ${tables.posting} AS posting
    JOIN ${tables.sale} AS sale ON sale.leaf = posting.leaf
    WHERE posting.height = hold.height AND posting.account = hold.account AND posting.amount < 0
      AND sale.body::jsonb ->> 'budget' IS NOT DISTINCT FROM hold.budget
      AND sale.body::jsonb ->> 'budget_day' IS NOT DISTINCT FROM hold.budget_day) AS sold ON true
  CROSS JOIN LATERAL (VALUES
    ('id', concat('block_', hold.height, '_', substring(hold.id FROM '[0-9]+$')), hold.id),
    ('amount', CASE WHEN hold.amount <= coalesce(sold.amount, 0) THEN hold.amount::text ELSE coalesce(sold.amount, 0) || ' or less' END, hold.amount::text)
  ) AS said (field, expected, found)
  WHERE (hold.height IS NOT NULL OR hold.id ~ '^block_') AND expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/** The uses that are held for a purchase are its payer's, and those of its sale where there is one. */
const checkUses = (tables: Tables) => sql`
  SELECT held.id AS row, field, expected, found
  FROM operations.use_hold AS held LEFT JOIN operations.claim AS claim ON claim.id = held.id
  LEFT JOIN ${tables.sale} AS sale ON sale.payment_id = held.id,
  LATERAL (VALUES
    ('id', coalesce(claim.id, 'a claim'), held.id),
    ('account', CASE WHEN split_part(claim.identity, '/', 3) LIKE 'app:%' THEN '' ELSE 'wallet:' END
      || coalesce(claim.payment::jsonb -> 'channel' ->> 'payer', split_part(claim.identity, '/', 3)),
      CASE WHEN claim.id IS NOT NULL THEN held.account END),
    ('uses', (sale.body::jsonb -> 'uses')::text,
      CASE WHEN sale.body::jsonb ? 'uses' THEN held.uses::text END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/** The operations whose answers have other statuses than 200. */
const writeOperations = [
  'store',
  'batch',
  'upload',
  'encryption',
] satisfies WriteForm['operation'][]

/** A reply is kept before it is charged for, or with its sale: that must fit the claim. */
const checkReplies = (tables: Tables) => sql`
  SELECT kept.payment_id AS row, field, expected, found
  FROM operations.kept_reply AS kept LEFT JOIN operations.claim AS claim ON claim.id = kept.payment_id
  LEFT JOIN ${tables.sale} AS sale ON sale.payment_id = kept.payment_id,
  LATERAL (SELECT coalesce(kept.sale, sale.body)::jsonb AS due) AS read,
  LATERAL (VALUES
    ('payment_id', coalesce(claim.id, 'a claim'), kept.payment_id),
    ('sale', claim.identity, due ->> 'identity'),
    ('sale', claim.request_hash, due ->> 'request_hash'),
    ('sale', CASE WHEN due ? 'paid_from' THEN '0' ELSE claim.amount::text END, due ->> 'deposited'),
    ('sale', '0', CASE WHEN due ? 'paid_from' THEN due ->> 'change'
      ELSE ((due ->> 'deposited')::numeric - (due ->> 'amount')::numeric - (due ->> 'change')::numeric)::text END),
    ('sale', CASE WHEN due ? 'paid_to' THEN claim.payment::jsonb -> 'payload' ->> 'to' END, due ->> 'paid_to'),
    ('sale', '0', (SELECT sum((line ->> 'amount')::numeric)::text FROM jsonb_array_elements(due -> 'postings' || '[{"amount": "0"}]') AS line)),
    ('sale', '-' || (due ->> 'amount'), '-' || coalesce((SELECT substr(line ->> 'amount', 2)
      FROM jsonb_array_elements(due -> 'postings') AS line WHERE line ->> 'account' IN ('wallet:' || (due ->> 'payer'), due ->> 'payer', 'channel:' || (due -> 'channel' ->> 'id')) AND line ->> 'amount' LIKE '-%'), '0')),
    ('body', due ->> 'result_hash', CASE WHEN kept.content_type = ${soldFileType}
      THEN convert_from(kept.body, 'UTF8')::jsonb ->> 'sha256' ELSE encode(sha256(kept.body), 'hex') END),
    ('status', CASE WHEN claim.operation = ANY(${[...writeOperations]}::text[]) AND kept.status IN (201, 202) THEN kept.status::text ELSE '200' END,
      kept.status::text),
    ('content_type', CASE claim.operation WHEN 'getBlob' THEN ${soldFileType} WHEN 'api' THEN kept.content_type
      WHEN 'query' THEN CASE WHEN kept.content_type = ANY(${Object.values(contentTypes)}::text[]) THEN kept.content_type ELSE 'a format of queries' END
      END, kept.content_type),
    ('status, content_type and sources', due ->> 'answer_hash', CASE WHEN due ? 'answer_hash' THEN encode(sha256(convert_to(
      concat_ws(E'\\n', kept.status, coalesce(kept.content_type, ''), coalesce(kept.sources, 'unknown')), 'UTF8')), 'hex') END),
    ('expires_at_ms', CASE WHEN kept.expires_at_ms < claim.created_at_ms THEN claim.created_at_ms || ' or later' END,
      CASE WHEN kept.expires_at_ms < claim.created_at_ms THEN kept.expires_at_ms::text END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/** An answer is kept from before its money is asked for, or charged, until its sale is in the ledger. */
const checkOwedReplies = (tables: Tables) => sql`
  SELECT claim.id AS row, 'payment_id' AS field, claim.id AS expected, NULL AS found
  FROM operations.claim AS claim LEFT JOIN operations.kept_reply AS kept ON kept.payment_id = claim.id
  LEFT JOIN ${tables.sale} AS sale ON sale.payment_id = claim.id
  WHERE claim.state IN ('ready', 'owed', 'answered') AND kept.payment_id IS NULL AND sale.payment_id IS NULL ORDER BY 1 LIMIT 1`

const compareReplies = (tables: Tables) => sql`
  SELECT kept.payment_id AS row, 'sale' AS field, sale.body AS expected, kept.sale AS found
  FROM operations.kept_reply AS kept JOIN ${tables.sale} AS sale ON sale.payment_id = kept.payment_id
  WHERE sale.body <> kept.sale ORDER BY 1 LIMIT 1`

/** A transaction is signed for a claim, to sweep its money, for a transfer of ours, a channel, an anchor, or a publication. */
const checkJournal = sql`
  SELECT journal.id AS row, 'id' AS field, 'a claim, a transfer, a channel, an anchor or a publication' AS expected, 'none' AS found
  FROM operations.transaction_journal AS journal LEFT JOIN operations.claim AS claim
    ON claim.id = regexp_replace(journal.id, '^sweep:(pay_[0-9a-f]+)(:[0-9]+)?$', '\\1')
  LEFT JOIN operations.outgoing_transfer AS sent
    ON sent.id = regexp_replace(journal.id, '^transfer:([^:]+)(:[0-9]+)?$', '\\1')
  WHERE claim.id IS NULL AND sent.id IS NULL AND journal.id !~ '^(anchors?|publish|channel-(deposit|claim|settle|refund)):' ORDER BY 1 LIMIT 1`

/** A transaction is in a block where it is mined or reverted; what settled a payment, or paid a transfer, did not fail. */
const checkJournalStates = sql`
  SELECT journal.id AS row, field, expected, found
  FROM operations.transaction_journal AS journal LEFT JOIN operations.claim AS claim ON claim.id = journal.id
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

/** Every transfer has in the ledger what its row says, and the ledger has no other. */
const compareTransfers = (tables: Tables) => sql`
  SELECT coalesce(sent.id, booked.id) AS row, field, expected, found
  FROM operations.outgoing_transfer AS sent FULL JOIN ${tables.transfer} AS booked ON booked.id = sent.id,
  LATERAL (VALUES
    ('id', booked.id, CASE WHEN booked.id IS NOT NULL THEN sent.id END),
    ('kind', booked.kind, CASE WHEN booked.id IS NOT NULL THEN sent.kind END),
    ('account', booked.account, CASE WHEN booked.id IS NOT NULL THEN sent.account END),
    ('network', booked.network, CASE WHEN booked.id IS NOT NULL THEN sent.network END),
    ('recipient', booked.recipient, CASE WHEN booked.id IS NOT NULL THEN sent.recipient END),
    ('amount', booked.amount::text, CASE WHEN booked.id IS NOT NULL THEN sent.amount::text END),
    ('valid_before', booked.valid_before::text, CASE WHEN booked.id IS NOT NULL THEN sent.valid_before::text END),
    ('state', CASE WHEN sent.state <> 'asked' AND booked.id IS NULL THEN 'an entry in the ledger' END, NULL),
    ('state', CASE sent.state WHEN 'paid' THEN 'transfer_paid' WHEN 'returned' THEN 'transfer_returned' END,
      CASE WHEN sent.state IN ('paid', 'returned') THEN booked.outcome END),
    ('transaction', CASE WHEN sent.state = 'paid' THEN booked.transaction END, CASE WHEN sent.state = 'paid' THEN sent.transaction END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

const compareKeyUses = (tables: Tables) => sql`
  SELECT key_hash AS row, 'key_hash' AS field, 'a key of the log' AS expected, key_hash AS found FROM operations.key_use
  WHERE NOT EXISTS (SELECT FROM ${tables.key} AS key WHERE key.key_hash = key_use.key_hash)
    AND NOT EXISTS (SELECT FROM ${tables.authorization} AS one WHERE one.key_hash = key_use.key_hash) ORDER BY 1 LIMIT 1`

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
async function auditJournal(database: Database): Promise<Difference | undefined> {
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
