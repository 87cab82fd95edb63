import type { OperationId, Tollbase } from '@tollbase/contract/contract'
import { Fault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { type RequestInfo, readLegibleBody } from '../http/request-info.ts'
import { listReadables } from '../model/catalog.ts'
import { parseRoot } from '../model/parse-root.ts'
import { requirePermission } from '../services/access/access.ts'
import {
  refuseOperator,
  requireApi,
  requireCollection,
  requireCollectionOrView,
  requireDescribableApi,
  requireDescribableCollection,
  requireDescribableSource,
  requireReadableApi,
} from '../services/access/find-sources.ts'
import { refuseOtherWallet } from '../services/access/refuse-other-wallet.ts'
import type { Tenant } from '../services/applications/tenants.ts'
import type { Call } from '../services/call.ts'
import { requireKey } from '../services/keys/key-record.ts'
import { authorizeUses } from '../services/queries/authorize-query.ts'
import { requireAskableQuery, requireDescribableQuery } from '../services/queries/query-access.ts'
import { type QueryLookup, requireQuery } from '../services/queries/stored-queries.ts'
import { requireSource } from '../services/reading/authorize-sources.ts'
import type { ListParts } from '../services/reading/prepare-list-read.ts'
import { judgeNamed } from '../services/reading/prepare-sql-read.ts'
import { requireProvable } from '../services/records/record-proof.ts'
import { requireAuthorization, requireGranter } from './authorizations/granters.ts'
import { refuseHidden } from './batch/execute-batch.ts'
import { requireBlobSource } from './blobs/get-blob.ts'
import { requireBlobRow } from './blobs/require-blobs.ts'
import { requireVisibleChain } from './chains/visible-chain.ts'
import { requireOwnDataSet } from './data-sets/delete-data-set.ts'
import { requireDataSet } from './data-sets/get-data-set.ts'
import { requireGrant } from './grants/revoke-grant.ts'
import { requireIndex, requireNamedIndex } from './indexes/require-index.ts'
import { requirePayout } from './payouts/cancel-payout.ts'
import { requireGettable } from './records/get-record.ts'
import { requireRelation } from './relations/delete-relation.ts'
import { requireReadableView } from './views/query-view.ts'
import { requireView } from './views/require-view.ts'
import { refuseOthers } from './wallets/withdraw-from-wallet.ts'

/**
 * Judges whether the caller may have what a request addresses, as its operation would: throws 401, 403 or 404. It is
 * asked where a request is refused for its shape, so of query and body only that is told which can be read.
 */
export async function judgeRefused(operationId: string, call: RefusedCall): Promise<void> {
  try {
    await byOperation.get(operationId)?.(call, readAsked(call.requestInfo))
  } catch (error) {
    // Any other fault of the thing that the request addresses does not outrank its shape.
    if (!(error instanceof Fault) || rightStatuses.has(error.status)) throw error
  }
}

const rightStatuses: ReadonlySet<number> = new Set([401, 403, 404])

/** The names in a request, not checked yet. A parameter that the path lacks is `''`. */
type Asked = {
  readonly app: string
  readonly collection: string
  readonly name: string
  readonly id: string
  readonly key_hash: string
  readonly payout_id: string
  readonly address: string
  readonly blob: string
  readonly upload: string
  readonly query: RequestInfo['query']
  readonly body: Readonly<Record<string, unknown>>
}

/** A call with the parts that judging uses, whatever the operation. */
type RefusedCall = Call<ListParts | 'queryPlans' | 'transfers' | 'blobs'>

type Judge = (call: RefusedCall, asked: Asked) => unknown
type TenantJudge = (call: RefusedCall, tenant: Tenant, asked: Asked) => unknown

const nothing = {
  app: '',
  collection: '',
  name: '',
  id: '',
  key_hash: '',
  payout_id: '',
  address: '',
  blob: '',
  upload: '',
}

function readAsked(requestInfo: RequestInfo): Asked {
  // No name contains U+0000, and no statement can ask for one: there is nothing of that name.
  const params = Object.entries(requestInfo.params).map(([name, text]) => [
    name,
    text.replaceAll('\0', '\ufffd'),
  ])
  const { query } = requestInfo
  return { ...nothing, ...Object.fromEntries(params), query, body: readLegibleBody(requestInfo) }
}

/** The rights are those of an application that is there. */
function of(judge: TenantJudge): Judge {
  return async (call, asked) => {
    const tenant = await call.service.tenants.load(asked.app)
    await judge(call, tenant, asked)
  }
}

const application = of(() => undefined)
const chain: Judge = (call, { app }) => requireVisibleChain(call, app)
const description = of((call, tenant, { collection }) =>
  requireDescribableCollection(call.caller, tenant, collection),
)
const collection = of((_, tenant, asked) => requireCollection(tenant, asked.collection))
const readable = of((_, tenant, asked) => requireCollectionOrView(tenant, asked.collection))
const past = of((call, tenant, asked) =>
  refuseOperator(call.caller, tenant, requireCollection(tenant, asked.collection)),
)
const index = of((_, tenant, asked) => requireNamedIndex(tenant, asked))
const view = of((_, tenant, { name }) => requireView(tenant, name))
const key: Judge = ({ service }, { app, key_hash }) => requireKey(service, app, key_hash)
const upload = of(({ service }, tenant, { collection, upload: id }) =>
  service.blobs.open.require({ tenant, collection }, id),
)
const grant = of((_, tenant, { id }) => requireGrant(tenant, id))
const describedQuery = of((call, tenant, { name, query }) =>
  requireDescribableQuery(call.caller, tenant, { name, version: versionIn(query.version) }),
)

/** Endpoints whose rights, or whose things, `enter` cannot judge: it knows the application alone. */
type Addressing = {
  [Id in OperationId]: Tollbase[Id] extends
    | { access: 'by-policy' }
    | { access: 'public'; path: `${string}/:app${string}` }
    | { path: `${string}/:${string}/:${string}` }
    ? Id
    : never
}[OperationId]

const judges: { readonly [Id in Addressing]: Judge } & {
  readonly [Id in OperationId]?: Judge
} = {
  getApplication: application,
  getApplicationHealth: application,
  getPricing: application,
  buyPass: application,
  refundSale: application,
  getPass: application,
  getQueriesOpenapi: application,
  listCollections: application,
  listQueries: application,
  // The price is for anyone to ask, and its operation judges before any money moves.
  updateEncryption: application,
  // A collection that is not there yet will be made.
  createCollectionIndex: application,

  getApiCollection: of((call, tenant, { name }) =>
    requireDescribableApi(call.caller, tenant, name),
  ),
  updateApiCollection: of((_, tenant, { name }) => requireApi(tenant, name)),
  getApiCollectionData: of((call, tenant, { name }) =>
    requireReadableApi(call.caller, tenant, name),
  ),

  getCollection: description,
  previewCollection: description,
  getCollectionStats: collection,
  updateCollection: collection,
  deleteCollection: collection,
  validateRecord: collection,
  setSharding: collection,
  getRetention: collection,
  setRetention: collection,
  eraseSubject: past,
  getRetentionCost: collection,
  optimizeCollection: collection,
  migrateCollection: past,
  getRecordHistory: past,
  listChanges: past,

  uploadBlob: application,
  createUpload: application,
  getUpload: upload,
  continueUpload: upload,
  finishUpload: upload,
  cancelUpload: upload,
  getBlob: of(async (call, tenant, { collection: name, blob: id }) => {
    const { collection } = requireBlobSource(call.caller, tenant, name)
    await requireBlobRow(call, tenant, { collection, id })
  }),
  deleteBlob: of(async (call, tenant, { collection: name, blob: id }) => {
    const collection = requireCollection(tenant, name)
    await requireBlobRow(call, tenant, { collection, id })
  }),

  getRecord: of((call, tenant, asked) => requireGettable(call.caller, tenant, asked.collection)),
  getRecordProof: of((call, tenant, { collection: name, query }) =>
    requireProvable(call.caller, tenant, { collection: name, ...receiptIn(query) }),
  ),
  storeRecords: ({ caller, service: { tenants } }, { body }) => {
    const { app } = parseRoot(toText(body.root))
    requirePermission(caller, 'Write', { appId: app, tenants })
  },
  executeBatch: of((call, tenant, { body }) =>
    refuseHidden(call, tenant, conditionalSteps(body.operations)),
  ),

  listRecords: (call, { body }) => requireSource(call, toText(body.root), ''),
  querySql: (call, { body }) => judgeNamed(call, toText(body.sql)),
  explainQuery: of((call, tenant, { app, collection: name, body }) =>
    judgeQuestion(call, body.query, `${app}::${requireCollectionOrView(tenant, name).name}`),
  ),
  quotePrice: (call, asked) => judgeQuote(call, asked),

  listCollectionIndexes: readable,
  getIndex: index,
  getIndexStatus: index,
  getIndexStatistics: index,
  rebuildIndex: index,
  deleteCollectionIndex: index,
  deleteIndex: of((_, tenant, { id }) => requireIndex(listReadables(tenant.data.catalog), id)),

  getView: view,
  deleteView: view,
  refreshView: view,
  queryView: of((call, tenant, { name }) => requireReadableView(call, tenant, name)),

  getQuery: describedQuery,
  getQueryDocs: describedQuery,
  deleteQuery: of((_, { data }, { name, query }) =>
    requireQuery(data.catalog, name, versionIn(query.version)),
  ),
  dryRunQuery: of((call, tenant, { name, query }) =>
    judgeRun(call, tenant, requireQuery(tenant.data.catalog, name, versionIn(query.version))),
  ),
  executeQuery: of((call, tenant, { name, query }) =>
    judgeRun(
      call,
      tenant,
      requireAskableQuery(call.caller, tenant, { name, version: versionIn(query.version) }),
    ),
  ),

  cancelPayout: ({ service }, { app, payout_id: id }) => requirePayout(service, app, id),
  rotateKey: key,
  revokeKey: key,
  revokeGrant: grant,
  deleteGrant: grant,
  deleteRelation: of((_, tenant, { id }) => requireRelation(tenant, id)),
  getDataSet: of(({ service }, tenant, { name }) => requireDataSet(service.dataSets, tenant, name)),
  deleteDataSet: of((_, tenant, { name }) => requireOwnDataSet(tenant, name)),
  listWalletChannels: ({ caller }, { address }) => refuseOtherWallet(caller, address.toLowerCase()),
  listWalletEntries: ({ caller }, { address }) => refuseOtherWallet(caller, address.toLowerCase()),
  listWalletTransactions: ({ caller }, { address }) =>
    refuseOtherWallet(caller, address.toLowerCase()),

  withdrawFromWallet: ({ caller }, { address }) => refuseOthers(caller, address.toLowerCase()),

  listAuthorizations: (call, { app }) => requireGranter(call, app),
  createAuthorization: (call, { app }) => requireGranter(call, app),
  revokeAuthorization: (call, { app, id }) => requireAuthorization(call, app, id),

  getCheckpoint: chain,
  getBlock: chain,
  getConsistencyProof: chain,
  listAnchors: chain,
  listCosignatures: chain,
  getEntryProof: async (call, { app, query }) => {
    await requireVisibleChain(call, app)
    if (typeof query.collection !== 'string' || query.height !== undefined) return
    const tenant = await call.service.tenants.load(app)
    requireProvable(call.caller, tenant, { collection: query.collection, ...receiptIn(query) })
  },
}

const byOperation: ReadonlyMap<string, Judge> = new Map(Object.entries(judges))

/** A run reads sources of other applications too, each of which is judged for its caller. */
async function judgeRun(call: RefusedCall, tenant: Tenant, found: QueryLookup): Promise<void> {
  const { tenants, queryPlans } = call.service
  const { stored } = found
  const onRead = call.requestInfo.context.noteRead
  const { template } = await queryPlans.load(tenants, tenant, { stored, onRead })
  await authorizeUses(call, tenant, template.uses)
}

/** A query, written as SQL or as a list of the root. */
async function judgeQuestion(call: RefusedCall, query: unknown, root: string): Promise<void> {
  if (!isRecord(query)) return
  if (typeof query.sql === 'string') await judgeNamed(call, query.sql)
  else await requireSource(call, root, '')
}

async function judgeQuote(call: RefusedCall, { body }: Asked): Promise<void> {
  const { app_id: app = body.app, collection: name, query, version, operation_type } = body
  if (typeof app !== 'string') return
  const tenant = await call.service.tenants.load(app)
  if (typeof query === 'string') {
    const asked = { name: query, version: typeof version === 'number' ? version : undefined }
    await judgeRun(call, tenant, requireAskableQuery(call.caller, tenant, asked))
  } else if (typeof name === 'string') {
    await judgeQuestion(call, query, `${app}::${name}`)
    if (operation_type === 'read') requireDescribableSource(call.caller, tenant, name)
  }
}

function conditionalSteps(operations: unknown) {
  return (Array.isArray(operations) ? operations : []).flatMap((one: unknown) => {
    if (!isRecord(one)) return []
    return [{ collection: toText(one.collection), conditions: one.conditions ?? undefined }]
  })
}

/** Where the version is no number, the newest version decides who may ask. */
function versionIn(text: unknown): number | undefined {
  return typeof text === 'string' && /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

/** `''` names nothing. */
function toText(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function receiptIn({ receipt_id }: Asked['query']) {
  return typeof receipt_id === 'string' ? { receipt_id } : {}
}
