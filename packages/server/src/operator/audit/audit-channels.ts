import { sql } from '../../database/sql.ts'

/**
 * A channel owes what was charged to it and is not claimed, at most what its last voucher allows; the contract owes
 * what was claimed and is not sent.
 */
export const compareChannels = sql`
  SELECT account, expected, found FROM (
    SELECT coalesce(one.account, 'channel:' || channel.id) AS account, coalesce(one.balance, 0)::text AS found,
      CASE WHEN charged > greatest(max_claimable, claimed) THEN 'covered by a voucher'
        ELSE coalesce(claimed - charged, 0)::text END AS expected
    FROM system.channel AS channel
    FULL JOIN (SELECT * FROM system.account WHERE account LIKE 'channel:%') AS one ON one.account = 'channel:' || channel.id
    UNION ALL
    SELECT coalesce(one.account, 'escrow:' || network), coalesce(one.balance, 0)::text, coalesce(settled, 0)::text
    FROM (SELECT network, (SELECT settled FROM system.channel_receiver AS sent WHERE sent.network = channel.network),
      coalesce((SELECT settled FROM system.channel_receiver AS sent WHERE sent.network = channel.network), 0) - sum(claimed) AS owed
      FROM system.channel AS channel GROUP BY network) AS books (network, sent, settled)
    FULL JOIN (SELECT * FROM system.account WHERE account LIKE 'escrow:%') AS one ON one.account = 'escrow:' || network
  ) AS books
  WHERE expected IS DISTINCT FROM found ORDER BY 1 LIMIT 1`
