import { BlockStore } from '../../chain/block-store.ts'
import type { Database } from '../../database/database.ts'
import { dropSchema } from '../../database/drop-schema.ts'
import { sql } from '../../database/sql.ts'
import type { WriteForm } from '../../services/payments/quotes/write-answer-form.ts'
import { soldFileType } from '../../services/payments/replies/sold-file.ts'
import { contentTypes } from '../../services/queries/answer-format.ts'
import { type ChainPlace, createScratch, replay } from '../maintenance.ts'
import { listHoldChecks } from './audit-holds.ts'
import { auditJournal } from './audit-journal.ts'
import { checkTakers } from './audit-takers.ts'
import { findWrongRow, type LogTables } from './find-wrong-row.ts'

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
      reversal: sql.id(schema, 'reversal'),
      key: sql.id(schema, 'api_key'),
      authorization: sql.id(schema, 'authorization'),
    }
    for (const [table, statement] of [
      ['operations.claim', checkClaims],
      ['operations.claim', compareDeposits(tables)],
      ['operations.claim', compareSales(tables)],
      ...listHoldChecks(tables),
      ['operations.kept_reply', checkReplies(tables)],
      ['operations.kept_reply', checkOwedReplies(tables)],
      ['operations.kept_reply', compareReplies(tables)],
      ['operations.outgoing_transfer', compareTransfers(tables)],
      ['operations.key_use', compareKeyUses(tables)],
      ['operations.payment_taker', checkTakers(tables)],
    ] as const) {
      const found = await findWrongRow(database, table, statement)
      if (found !== undefined) return found
    }
    return auditJournal(database)
  })
}

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

/** A rare look is a day ahead at most; clocks may differ. */
const lookAheadSeconds = 8 * 24 * 3600

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
    ('next_look_ms', CASE WHEN state IN ('claimed', 'ready', 'failed', 'sold') AND next_look_ms > created_at_ms
      AND next_look_ms < (extract(epoch FROM now()) + ${lookAheadSeconds}::int4) * 1000 THEN next_look_ms::text END, next_look_ms::text),
    ('id', CASE WHEN id ~ '^pay_[0-9a-f]{32}$' THEN id ELSE 'the id of a payment' END, id)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY id LIMIT 1`

/**
 * Every booked deposit was claimed, with the values that were booked; every claim that counts as booked has a
 * deposit.
 */
const compareDeposits = (tables: LogTables) => sql`
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
const compareSales = (tables: LogTables) => sql`
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

/** The operations whose answers have other statuses than 200. */
const writeOperations = [
  'store',
  'batch',
  'upload',
  'encryption',
] satisfies WriteForm['operation'][]

/** A reply is kept before it is charged for, or with its sale: that must fit the claim. */
const checkReplies = (tables: LogTables) => sql`
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
const checkOwedReplies = (tables: LogTables) => sql`
  SELECT claim.id AS row, 'payment_id' AS field, claim.id AS expected, NULL AS found
  FROM operations.claim AS claim LEFT JOIN operations.kept_reply AS kept ON kept.payment_id = claim.id
  LEFT JOIN ${tables.sale} AS sale ON sale.payment_id = claim.id
  WHERE claim.state IN ('ready', 'owed', 'answered') AND kept.payment_id IS NULL AND sale.payment_id IS NULL ORDER BY 1 LIMIT 1`

const compareReplies = (tables: LogTables) => sql`
  SELECT kept.payment_id AS row, 'sale' AS field, sale.body AS expected, kept.sale AS found
  FROM operations.kept_reply AS kept JOIN ${tables.sale} AS sale ON sale.payment_id = kept.payment_id
  WHERE sale.body <> kept.sale ORDER BY 1 LIMIT 1`

/** Every transfer has in the ledger what its row says, and the ledger has no other. */
const compareTransfers = (tables: LogTables) => sql`
  SELECT coalesce(sent.id, booked.id) AS row, field, expected, found
  FROM operations.outgoing_transfer AS sent FULL JOIN ${tables.transfer} AS booked ON booked.id = sent.id,
  LATERAL (VALUES
    ('id', booked.id, CASE WHEN booked.id IS NOT NULL THEN sent.id END),
    ('kind', booked.kind, CASE WHEN booked.id IS NOT NULL THEN sent.kind END),
    ('account', booked.account, CASE WHEN booked.id IS NOT NULL THEN sent.account END),
    ('network', booked.network, CASE WHEN booked.id IS NOT NULL THEN sent.network END),
    ('recipient', booked.recipient, CASE WHEN booked.id IS NOT NULL THEN sent.recipient END),
    ('amount', booked.amount::text, CASE WHEN booked.id IS NOT NULL THEN sent.amount::text END),
    ('fee', CASE WHEN booked.id IS NOT NULL THEN (SELECT coalesce(-sum(line.amount), 0)::text FROM ${tables.posting} AS line
      WHERE line.account = booked.account AND line.leaf = booked.leaf AND line.kind = 'withdrawal_fee') END, CASE WHEN booked.id IS NOT NULL THEN sent.fee::text END),
    ('valid_before', booked.valid_before::text, CASE WHEN booked.id IS NOT NULL THEN sent.valid_before::text END),
    ('state', CASE WHEN sent.state <> 'asked' AND booked.id IS NULL THEN 'an entry in the ledger' END, NULL),
    ('state', CASE sent.state WHEN 'paid' THEN CASE WHEN EXISTS (SELECT 1 FROM ${tables.reversal} AS taken WHERE taken.payment_id = sent.id)
      THEN 'transfer_returned' ELSE 'transfer_paid' END WHEN 'returned' THEN 'transfer_returned' END,
      CASE WHEN sent.state IN ('paid', 'returned') THEN booked.outcome END),
    ('transaction', CASE WHEN sent.state = 'paid' THEN booked.transaction END,
      CASE WHEN sent.state = 'paid' AND booked.outcome = 'transfer_paid' THEN sent.transaction END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

const compareKeyUses = (tables: LogTables) => sql`
  SELECT key_hash AS row, 'key_hash' AS field, 'a key of the log' AS expected, key_hash AS found FROM operations.key_use
  WHERE NOT EXISTS (SELECT FROM ${tables.key} AS key WHERE key.key_hash = key_use.key_hash)
    AND NOT EXISTS (SELECT FROM ${tables.authorization} AS one WHERE one.key_hash = key_use.key_hash) ORDER BY 1 LIMIT 1`
