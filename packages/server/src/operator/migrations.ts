import { buildCelestiaTables } from '../celestia/blob-journal.ts'
import { buildCommitNoteTables } from '../chain/commit-notes.ts'
import { buildScrubTables } from '../chain/scrub-marks.ts'
import { buildLeaseSizeColumns, buildLeaseTables } from '../chain/tables.ts'
import type { Migration } from '../database/run-migrations.ts'
import { buildMissingAnchorTables } from '../projections/anchors.ts'
import {
  buildMissingChannelTables,
  buildMissingRefundColumn,
} from '../projections/channel-tables.ts'
import { buildOrphanedIndexRemoval } from '../projections/definitions/orphaned-indexes.ts'
import { buildPostingKey } from '../projections/ledger.ts'
import { buildMissingFormerColumns } from '../projections/reseal.ts'
import { buildMissingReversalTable } from '../projections/reversals.ts'
import { buildBoughtTotals } from '../projections/sales.ts'
import { buildMissingStorageFeeTables } from '../projections/storage-fees.ts'
import {
  buildSignaturePaymentColumn,
  buildUsedSignatureTables,
} from '../services/access/wallet-signature.ts'
import { buildDataKeyTables } from '../services/encryption/data-key-store.ts'
import { buildSecretTables } from '../services/identity/secrets.ts'
import { buildKeyUseTables } from '../services/keys/key-use.ts'
import {
  buildAccountTables,
  buildLockVersionColumn,
} from '../services/payments/accounts/account-lock.ts'
import {
  buildHoldBudgetColumns,
  buildHoldHeightColumn,
  buildHoldTables,
} from '../services/payments/accounts/holds.ts'
import {
  buildBalanceStates,
  buildClaimListIndex,
  buildClaimStates,
  buildClaimTermsColumn,
  buildDepositedState,
  buildNameIndex,
  buildNarrowSales,
  buildNextLookColumn,
  buildPaymentIdentifierColumn,
  buildPaymentTables,
  buildReadyIndex,
  buildReadyState,
  buildReplySourcesColumn,
  buildReplyTypeColumn,
  buildSoldFileIndex,
  buildUnderWayIndex,
  buildWriteFormColumn,
} from '../services/payments/claims/claim-tables.ts'
import { buildTakerTable } from '../services/payments/facilitating/two-uses.ts'
import { buildUseTables } from '../services/payments/meters/use-store.ts'
import { buildChannelMoves, buildPayerLists } from '../services/payments/payer-lists.ts'
import { buildTakenBackTable } from '../services/payments/reversals/taken-back.ts'
import {
  buildFinalLeafColumn,
  buildNetworkTables,
  buildRestoredColumns,
} from '../services/payments/settling/network-pin.ts'
import {
  buildSentState,
  buildTransferTables,
  buildWithdrawalFees,
} from '../services/payments/transfers/transfer-store.ts'
import { buildFinalState, buildPublicationTables } from '../services/publishing/outbox.ts'
import {
  buildNamedApplicationColumn,
  buildNamedRequestTables,
} from '../services/requests/named-request-store.ts'
import { buildErasureTables } from '../services/retention/erasure-store.ts'
import { buildJointColumns, buildReplacementColumns, makeJournalTables } from '../x402/journal.ts'
import { buildJournalTimes } from '../x402/list-journal.ts'

/**
 * The migrations of the operational state, which is not in any chain's entries and which rebuild never touches.
 * Forward only; a change is a new number, never an edit.
 */
export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: 'operational state',
    statements: () => [
      ...buildLeaseTables(),
      ...makeJournalTables(),
      ...buildPaymentTables(),
      ...buildUsedSignatureTables(),
      ...buildKeyUseTables(),
      ...buildSecretTables(),
      ...buildNetworkTables(),
    ],
  },
  { id: 2, name: 'types of kept replies', statements: () => buildReplyTypeColumn() },
  { id: 3, name: 'terms of claims', statements: () => buildClaimTermsColumn() },
  { id: 4, name: 'restored databases', statements: () => buildRestoredColumns() },
  { id: 5, name: 'sizes of chains', statements: () => buildLeaseSizeColumns() },
  { id: 6, name: 'states of claims', statements: () => buildClaimStates() },
  {
    id: 7,
    name: 'transfers of ours',
    statements: () => [...buildAccountTables(), ...buildTransferTables()],
  },
  { id: 8, name: 'payments by application', statements: () => buildClaimListIndex() },
  { id: 9, name: 'keys of encrypted collections', statements: () => buildDataKeyTables() },
  { id: 10, name: 'heads and anchors', statements: () => buildMissingAnchorTables() },
  {
    id: 11,
    name: 'payments from balances',
    statements: () => [...buildHoldTables(), ...buildBalanceStates()],
  },
  { id: 12, name: 'erased entries', statements: () => buildErasureTables() },
  { id: 13, name: 'deposited claims', statements: () => buildDepositedState() },
  { id: 14, name: 'files to write anew', statements: () => buildScrubTables() },
  { id: 15, name: 'uses of quotas and tiers', statements: () => buildUseTables() },
  { id: 16, name: 'forms of writes', statements: () => buildWriteFormColumn() },
  { id: 17, name: 'channels', statements: () => buildMissingChannelTables() },
  {
    id: 18,
    name: 'named requests',
    statements: () => [...buildCommitNoteTables(), ...buildNamedRequestTables()],
  },
  { id: 19, name: 'refunds of channels', statements: () => buildMissingRefundColumn() },
  { id: 20, name: 'transfers that are sent', statements: () => buildSentState() },
  { id: 21, name: 'publications', statements: () => buildPublicationTables() },
  { id: 22, name: 'final publications', statements: () => buildFinalState() },
  { id: 23, name: 'budgets of holds', statements: () => buildHoldBudgetColumns() },
  { id: 24, name: 'replaced transactions', statements: () => buildReplacementColumns() },
  { id: 25, name: 'answers before their money', statements: () => buildReadyState() },
  {
    id: 26,
    name: 'sales in one commit',
    statements: () => [...buildLockVersionColumn(), ...buildHoldHeightColumn()],
  },
  { id: 27, name: 'blobs on Celestia', statements: () => buildCelestiaTables() },
  { id: 28, name: 'payments straight to sellers by payer', statements: () => buildReadyIndex() },
  { id: 29, name: 'former names of blobs', statements: () => buildMissingFormerColumns() },
  {
    id: 30,
    name: 'names of payments',
    statements: () => buildPaymentIdentifierColumn(),
  },
  { id: 31, name: 'sources of answers', statements: () => buildReplySourcesColumn() },
  {
    id: 32,
    name: 'one payment of a name',
    statements: () => [...buildUnderWayIndex(), ...buildNameIndex()],
  },
  {
    id: 33,
    name: 'applications of named requests',
    statements: () => buildNamedApplicationColumn(),
  },
  { id: 34, name: 'fees for storage', statements: () => buildMissingStorageFeeTables() },
  {
    id: 35,
    name: 'narrow sales',
    statements: () => [...buildNarrowSales(), ...buildPostingKey()],
  },
  {
    id: 36,
    name: 'reversals',
    statements: () => [...buildMissingReversalTable(), ...buildFinalLeafColumn()],
  },
  { id: 37, name: 'joint transactions', statements: () => buildJointColumns() },
  { id: 38, name: 'fees for withdrawals', statements: () => buildWithdrawalFees() },
  { id: 39, name: 'times of transactions', statements: () => buildJournalTimes() },
  { id: 40, name: 'moves that were taken back', statements: () => buildTakenBackTable() },
  { id: 41, name: 'lists of payers', statements: () => buildPayerLists() },
  { id: 42, name: 'moves of channels', statements: () => buildChannelMoves() },
  { id: 43, name: 'payments of sign-ins', statements: () => buildSignaturePaymentColumn() },
  { id: 44, name: 'takers of payments', statements: () => buildTakerTable() },
  { id: 45, name: 'purchases of applications', statements: () => buildBoughtTotals() },
  {
    id: 46,
    name: 'indexes of what was deleted',
    statements: () => buildOrphanedIndexRemoval(),
  },
  { id: 47, name: 'rare looks at payments', statements: () => buildNextLookColumn() },
  { id: 48, name: 'files of kept answers', statements: () => buildSoldFileIndex() },
]
