import { type SqlStatement, sql } from '../../database/sql.ts'
import type { LogTables } from './find-wrong-row.ts'

/**
 * A payment to a seller's own wallet has one use. A purchase whose answer waits for its money has the payment, and so has
 * one that was sold and paid directly, where the row is still there; all others are of a claim, or of a settlement. One
 * that has no end yet has a row by its own id, with the name of what was asked.
 */
export const checkTakers = (tables: LogTables): SqlStatement => sql`
  SELECT coalesce(taken.identity, waiting.identity) AS row, field, expected, found
  FROM operations.payment_taker AS taken
  FULL JOIN (SELECT id, identity FROM operations.claim WHERE state = 'ready' AND NOT payment::jsonb ? 'upto') AS waiting
    ON waiting.identity = taken.identity
  LEFT JOIN ${tables.sale} AS sale ON sale.identity = taken.identity AND sale.body::jsonb ? 'paid_to'
  LEFT JOIN operations.claim AS own ON own.identity = taken.identity AND own.id = taken.taker
  CROSS JOIN LATERAL (VALUES
    ('taker', coalesce(waiting.id, sale.payment_id, own.id,
      CASE WHEN taken.taker ~ '^settlement_[0-9a-f]{32}$' OR taken.identity || taken.taker ~ '^facilitated_[0-9a-f]{32}asked_[0-9a-f]{32}$' THEN taken.taker ELSE 'its claim, or a settlement' END), coalesce(taken.taker, 'none')),
    ('identity', CASE WHEN taken.identity !~ '^([^/]+(/0x[0-9a-f]{40}){2}/0x[0-9a-f]{64}|facilitated_[0-9a-f]{32})$' THEN 'that of a payment' ELSE taken.identity END,
      taken.identity)
  ) AS said (field, expected, found)
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`
