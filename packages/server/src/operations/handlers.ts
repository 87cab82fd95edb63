import type { Tollbase } from '@tollbase/contract/contract'
import type { Handlers } from '../http/implement.ts'
import type { Call, Service } from '../services/call.ts'
import { createApiCollection } from './api-collections/create-api-collection.ts'
import { getApiCollection } from './api-collections/get-api-collection.ts'
import { getApiCollectionData } from './api-collections/get-api-collection-data.ts'
import { updateApiCollection } from './api-collections/update-api-collection.ts'
import { archiveApplication } from './applications/archive-application.ts'
import { createApplication } from './applications/create-application.ts'
import { getApplication } from './applications/get-application.ts'
import { getApplicationStats } from './applications/get-application-stats.ts'
import { listApplications } from './applications/list-applications.ts'
import { updateApplication } from './applications/update-application.ts'
import { createAuthorization } from './authorizations/create-authorization.ts'
import { listAuthorizations } from './authorizations/list-authorizations.ts'
import { revokeAuthorization } from './authorizations/revoke-authorization.ts'
import { executeBatch } from './batch/execute-batch.ts'
import { getBilling } from './billing/get-billing.ts'
import { getBillingStatement } from './billing/get-billing-statement.ts'
import { listSales } from './billing/list-sales.ts'
import { refundSale } from './billing/refund-sale.ts'
import { cancelUpload } from './blobs/cancel-upload.ts'
import { continueUpload } from './blobs/continue-upload.ts'
import { createUpload } from './blobs/create-upload.ts'
import { deleteBlob } from './blobs/delete-blob.ts'
import { finishUpload } from './blobs/finish-upload.ts'
import { getBlob } from './blobs/get-blob.ts'
import { getUpload } from './blobs/get-upload.ts'
import { uploadBlob } from './blobs/upload-blob.ts'
import { getBlock } from './chains/get-block.ts'
import { getCheckpoint } from './chains/get-checkpoint.ts'
import { getConsistencyProof } from './chains/get-consistency-proof.ts'
import { getEntryProof } from './chains/get-entry-proof.ts'
import { listAnchors } from './chains/list-anchors.ts'
import { listCosignatures } from './chains/list-cosignatures.ts'
import { listChanges } from './changes/list-changes.ts'
import { createCollection } from './collections/create-collection.ts'
import { deleteCollection } from './collections/delete-collection.ts'
import { getCollection } from './collections/get-collection.ts'
import { getCollectionStats } from './collections/get-collection-stats.ts'
import { listCollections } from './collections/list-collections.ts'
import { previewCollection } from './collections/preview-collection.ts'
import { setSharding } from './collections/set-sharding.ts'
import { updateCollection } from './collections/update-collection.ts'
import { validateRecord } from './collections/validate-record.ts'
import { createDataSet } from './data-sets/create-data-set.ts'
import { deleteDataSet } from './data-sets/delete-data-set.ts'
import { getDataSet } from './data-sets/get-data-set.ts'
import { listDataSets } from './data-sets/list-data-sets.ts'
import { getEncryption } from './encryption/get-encryption.ts'
import { updateEncryption } from './encryption/update-encryption.ts'
import { createGrant } from './grants/create-grant.ts'
import { listGrants } from './grants/list-grants.ts'
import { deleteGrant, revokeGrant } from './grants/revoke-grant.ts'
import { createCollectionIndex } from './indexes/create-collection-index.ts'
import { createIndex } from './indexes/create-index.ts'
import { deleteCollectionIndex } from './indexes/delete-collection-index.ts'
import { deleteIndex } from './indexes/delete-index.ts'
import { explainQuery } from './indexes/explain-query.ts'
import { getIndex } from './indexes/get-index.ts'
import { getIndexStatistics } from './indexes/get-index-statistics.ts'
import { getIndexStatus } from './indexes/get-index-status.ts'
import { listCollectionIndexes } from './indexes/list-collection-indexes.ts'
import { listIndexes } from './indexes/list-indexes.ts'
import { optimizeCollection } from './indexes/optimize-collection.ts'
import { rebuildIndex } from './indexes/rebuild-index.ts'
import { createKey } from './keys/create-key.ts'
import { listKeys } from './keys/list-keys.ts'
import { regenerateKey } from './keys/regenerate-key.ts'
import { revokeKey } from './keys/revoke-key.ts'
import { rotateKey } from './keys/rotate-key.ts'
import { listRecords } from './listing/list-records.ts'
import { querySql } from './listing/query-sql.ts'
import { migrateCollection } from './migrations/migrate-collection.ts'
import { getPayment } from './payments/get-payment.ts'
import { getReceipt } from './payments/get-receipt.ts'
import { getSupportedPayments } from './payments/get-supported-payments.ts'
import { requestFaucet } from './payments/request-faucet.ts'
import { settlePayment } from './payments/settle-payment.ts'
import { verifyPayment } from './payments/verify-payment.ts'
import { cancelPayout } from './payouts/cancel-payout.ts'
import { getPayoutInfo } from './payouts/get-payout-info.ts'
import { listPayouts } from './payouts/list-payouts.ts'
import { requestPayout } from './payouts/request-payout.ts'
import { setPayoutSettings } from './payouts/set-payout-settings.ts'
import { buyPass } from './pricing/buy-pass.ts'
import { getPass } from './pricing/get-pass.ts'
import { getPricing } from './pricing/get-pricing.ts'
import { quotePrice } from './pricing/quote-price.ts'
import { setPricing } from './pricing/set-pricing.ts'
import { simulatePricing } from './pricing/simulate-pricing.ts'
import { updatePricing } from './pricing/update-pricing.ts'
import { createQuery } from './queries/create-query.ts'
import { deleteQuery } from './queries/delete-query.ts'
import { dryRunQuery } from './queries/dry-run-query.ts'
import { executeQuery } from './queries/execute-query.ts'
import { getQueriesOpenapi } from './queries/get-queries-openapi.ts'
import { getQuery } from './queries/get-query.ts'
import { getQueryDocs } from './queries/get-query-docs.ts'
import { listQueries } from './queries/list-queries.ts'
import { getRecord } from './records/get-record.ts'
import { getRecordHistory } from './records/get-record-history.ts'
import { getRecordProof } from './records/get-record-proof.ts'
import { storeRecords } from './records/store-records.ts'
import { createRelation } from './relations/create-relation.ts'
import { deleteRelation } from './relations/delete-relation.ts'
import { listRelations } from './relations/list-relations.ts'
import { eraseSubject } from './retention/erase-subject.ts'
import { getRetention } from './retention/get-retention.ts'
import { getRetentionCost } from './retention/get-retention-cost.ts'
import { setRetention } from './retention/set-retention.ts'
import { getApplicationHealth } from './service/get-application-health.ts'
import { getDocs } from './service/get-docs.ts'
import { getGuide } from './service/get-guide.ts'
import { getMetrics } from './service/get-metrics.ts'
import { getOpenapi } from './service/get-openapi.ts'
import { getReady } from './service/get-ready.ts'
import { getRoot } from './service/get-root.ts'
import { getWellKnown } from './service/get-well-known.ts'
import { postInfo } from './service/post-info.ts'
import { getTask } from './tasks/get-task.ts'
import { listTasks } from './tasks/list-tasks.ts'
import { getTransaction } from './transactions/get-transaction.ts'
import { listPlatformTransactions } from './transactions/list-platform-transactions.ts'
import { listTransactions } from './transactions/list-transactions.ts'
import { listWalletTransactions } from './transactions/list-wallet-transactions.ts'
import { createView } from './views/create-view.ts'
import { createViewFromSql } from './views/create-view-from-sql.ts'
import { deleteView } from './views/delete-view.ts'
import { getView } from './views/get-view.ts'
import { listViews } from './views/list-views.ts'
import { queryView } from './views/query-view.ts'
import { refreshView } from './views/refresh-view.ts'
import { depositToApplication } from './wallets/deposit-to-application.ts'
import { depositToWallet } from './wallets/deposit-to-wallet.ts'
import { getApplicationWallet } from './wallets/get-application-wallet.ts'
import { getPlatformWallet } from './wallets/get-platform-wallet.ts'
import { getWallet } from './wallets/get-wallet.ts'
import { listApplicationWalletEntries } from './wallets/list-application-wallet-entries.ts'
import { listHeldPayments } from './wallets/list-held-payments.ts'
import { listPlatformWalletEntries } from './wallets/list-platform-wallet-entries.ts'
import { listWalletChannels } from './wallets/list-wallet-channels.ts'
import { listWalletEntries } from './wallets/list-wallet-entries.ts'
import { releaseHeldPayments } from './wallets/release-held-payments.ts'
import { withdrawFromApplication } from './wallets/withdraw-from-application.ts'
import { withdrawFromPlatform } from './wallets/withdraw-from-platform.ts'
import { withdrawFromWallet } from './wallets/withdraw-from-wallet.ts'

/** Every operation of the contract; a missing one does not compile. */
export const handlers: Handlers<Tollbase, Call<keyof Service>> = {
  createApiCollection,
  getApiCollection,
  getApiCollectionData,
  updateApiCollection,
  archiveApplication,
  createApplication,
  createCollection,
  createCollectionIndex,
  createDataSet,
  getEncryption,
  eraseSubject,
  getRetention,
  getRetentionCost,
  setRetention,
  updateEncryption,
  createGrant,
  createIndex,
  createKey,
  createQuery,
  createRelation,
  createView,
  createViewFromSql,
  deleteBlob,
  deleteCollection,
  deleteCollectionIndex,
  deleteDataSet,
  deleteGrant,
  deleteIndex,
  deleteQuery,
  deleteRelation,
  dryRunQuery,
  deleteView,
  executeBatch,
  executeQuery,
  explainQuery,
  getApplication,
  getApplicationHealth,
  getApplicationStats,
  getApplicationWallet,
  getPlatformWallet,
  listHeldPayments,
  listPlatformWalletEntries,
  releaseHeldPayments,
  withdrawFromPlatform,
  getBlob,
  getBlock,
  getCheckpoint,
  getCollection,
  getCollectionStats,
  getConsistencyProof,
  listAnchors,
  listCosignatures,
  getDataSet,
  getDocs,
  getEntryProof,
  getGuide,
  getIndex,
  getIndexStatistics,
  getIndexStatus,
  getMetrics,
  getOpenapi,
  getPayment,
  cancelPayout,
  getPayoutInfo,
  setPayoutSettings,
  requestPayout,
  listPayouts,
  listSales,
  getBilling,
  getBillingStatement,
  getTransaction,
  listPlatformTransactions,
  listTransactions,
  getPricing,
  getQueriesOpenapi,
  getQuery,
  getQueryDocs,
  getReady,
  getReceipt,
  getRecord,
  getRecordHistory,
  getRecordProof,
  getRoot,
  getSupportedPayments,
  getTask,
  getView,
  getWallet,
  getWellKnown,
  listApplicationWalletEntries,
  listApplications,
  listChanges,
  listCollectionIndexes,
  listCollections,
  listDataSets,
  listGrants,
  listIndexes,
  listKeys,
  listQueries,
  listRecords,
  listRelations,
  listTasks,
  listViews,
  listWalletChannels,
  listWalletEntries,
  listWalletTransactions,
  listAuthorizations,
  createAuthorization,
  revokeAuthorization,
  depositToWallet,
  depositToApplication,
  withdrawFromWallet,
  withdrawFromApplication,
  migrateCollection,
  optimizeCollection,
  postInfo,
  previewCollection,
  querySql,
  queryView,
  quotePrice,
  rebuildIndex,
  refreshView,
  regenerateKey,
  requestFaucet,
  revokeGrant,
  revokeKey,
  rotateKey,
  setPricing,
  simulatePricing,
  refundSale,
  buyPass,
  getPass,
  updatePricing,
  setSharding,
  settlePayment,
  storeRecords,
  updateApplication,
  updateCollection,
  uploadBlob,
  createUpload,
  getUpload,
  continueUpload,
  finishUpload,
  cancelUpload,
  validateRecord,
  verifyPayment,
  getHealth: getRoot,
  postHealth: getRoot,
}
