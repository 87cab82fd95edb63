import { type SqlStatement, sql } from '../../database/sql.ts'
import type { LogTables } from './find-wrong-row.ts'

/** Lists the checks of what is held on balances and of uses, each with its table: a row of it is a difference. */
export function listHoldChecks(tables: LogTables): readonly (readonly [string, SqlStatement])[] {
  return [
    ['operations.account_hold', checkHolds],
    ['operations.account_hold', checkFeeHolds],
    ['operations.account_hold', checkRefundHolds(tables)],
    ['operations.account_hold', checkStorageHolds],
    ['operations.account_hold', checkReversalHolds],
    ['operations.account_hold', checkBlockHolds(tables)],
    ['operations.account_hold', checkChargedBlocks(tables)],
    ['operations.use_hold', checkUses(tables)],
  ]
}

/**
 * Every hold is of a claim in a state that has one, and is as much as that may be charged; every such claim has one.
 * Refunds, reversals and takeovers of channels have holds of their own, and so have blocks, fees for storage, and
 * payments that go directly to their sellers.
 */
const checkHolds = sql`
  SELECT coalesce(hold.id, claim.id) AS row, field, expected, found
  FROM (SELECT * FROM operations.account_hold AS one WHERE id !~ '^(refund|channel|takeover|block|storage|reversal)_' AND NOT EXISTS (
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
 * The platform's share of a direct payment is held on the seller's account, until its sale
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
const checkRefundHolds = (tables: LogTables) => sql`
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

/** Where a chain does not have a payment's money any more, no more than that is held, on the account that got it. */
const checkReversalHolds = sql`
  SELECT hold.id AS row, field, expected, found FROM operations.account_hold AS hold
  LEFT JOIN operations.claim AS claim ON claim.id = substr(hold.id, ${'reversal_'.length + 1}::int4)
  CROSS JOIN LATERAL (VALUES
    ('id', coalesce(claim.id, 'a claim'), substr(hold.id, ${'reversal_'.length + 1}::int4)),
    ('account', CASE WHEN claim.operation = 'deposit' AND claim.terms IS NOT NULL THEN claim.terms::jsonb -> 'payees' -> 0 ->> 'account'
      ELSE 'wallet:' || split_part(claim.identity, '/', 3) END, hold.account),
    ('amount', CASE WHEN hold.amount > claim.amount THEN claim.amount || ' or less' ELSE hold.amount::text END, hold.amount::text)
  ) AS said (field, expected, found)
  WHERE hold.id LIKE 'reversal\\_%' AND expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`

/**
 * Charges to balances in blocks that the tables do not have yet are held: each by its payment's own hold, or, all others
 * of one account and budget together, by that of their block.
 */
const checkChargedBlocks = (tables: LogTables) => sql`
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
const checkBlockHolds = (tables: LogTables) => sql`
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

/** The uses that are held for a purchase are its buyer's, and those of its sale where there is one. */
const checkUses = (tables: LogTables) => sql`
  SELECT held.id AS row, field, expected, found
  FROM operations.use_hold AS held LEFT JOIN operations.claim AS claim ON claim.id = held.id
  LEFT JOIN ${tables.sale} AS sale ON sale.payment_id = held.id,
  LATERAL (VALUES
    ('id', coalesce(claim.id, 'a claim'), held.id),
    ('account', CASE WHEN split_part(claim.identity, '/', 3) LIKE 'app:%' OR claim.payment::jsonb -> 'channel' ? 'isByOther'
      THEN split_part(claim.identity, '/', 3)
      ELSE concat('wallet:', coalesce(claim.payment::jsonb -> 'channel' ->> 'payer', split_part(claim.identity, '/', 3))) END,
      CASE WHEN claim.id IS NOT NULL THEN held.account END),
    ('uses', (sale.body::jsonb -> 'uses')::text,
      CASE WHEN sale.body::jsonb ? 'uses' THEN held.uses::text END)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`
