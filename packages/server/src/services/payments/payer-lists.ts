import type { SqlStatement } from '../../database/sql.ts'
import { sql } from '../../database/sql.ts'
import {
  buildChannelMovesFromClaims,
  buildChannelMoveTable,
} from '../../projections/channel-moves.ts'
import { printOnce } from '../../projections/channel-tables.ts'
import { buildRefundBuyerIndex } from '../../projections/refunds.ts'
import { buildClaimPayerIndex } from './claims/claim-tables.ts'

/** Builds the indexes and the table of a payer's list of transactions, for a service from before there was one. */
export function buildPayerLists(): SqlStatement[] {
  return [
    ...buildClaimPayerIndex(),
    printOnce(
      sql`to_regclass('system.watermark') IS NOT NULL AND to_regclass('system.channel_claim') IS NULL
        AND to_regclass('system.channel_move') IS NULL`,
      [...buildChannelMoveTable('system'), buildRefundBuyerIndex('system')],
    ),
  ]
}

/** Builds the table of what moved in channels from that of claims alone. */
export function buildChannelMoves(): SqlStatement[] {
  return [
    printOnce(sql`to_regclass('system.channel_claim') IS NOT NULL`, buildChannelMovesFromClaims()),
  ]
}
