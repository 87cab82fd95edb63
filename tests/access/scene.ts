import type { Route } from '@tollbase/contract/route'
import { listPaths } from '../../packages/server/src/http/implement.ts'
import type { TestApp, TestService } from '../support/service.ts'
import { makeTestWallet } from '../support/wallet.ts'
import { type Credential, makeCredentials, type Request } from './credentials.ts'
import { type Kind, kinds } from './oracle.ts'

/** An application with one collection of each kind, a record in each, and every kind of caller. */
export type Scene = {
  readonly app: TestApp
  readonly owner: ReturnType<typeof makeTestWallet>
  readonly ticket: string
  readonly credentials: readonly Credential[]
}

const policies: Readonly<Record<Kind, unknown>> = {
  free: { read: 'public' },
  priced: { read: 'public', price: { per_access: '10' } },
  unsaid: null,
  sold: { price: { per_access: '10' } },
  key: { read: 'key' },
  private: { read: 'private' },
}

/** Invalid JSON: a caller who may go on gets a 400, and nothing is changed. */
export const unreadable = '{"this is": not JSON'

export async function openScene(service: TestService): Promise<Scene> {
  const [app, other] = [await service.createApp(), await service.createApp()]
  const owner = makeTestWallet()
  const by = { headers: app.headers }
  const at = `/api/apps/${app.appId}`
  const owned = { body: { owner_address: owner.address }, headers: service.operator }
  const patched = await service.request('PATCH', at, owned)
  if (patched.status !== 200) throw new Error(patched.text)
  let ticket = ''
  for (const kind of kinds) {
    const body = { name: kind, access_policy: policies[kind] }
    await service.request('POST', `${at}/collections`, { body, ...by })
    const index = { field: 'n', name: 'by_n' }
    await service.request('POST', `${at}/collections/${kind}/indexes`, { body: index, ...by })
    const store = { root: `${app.appId}::${kind}`, data: [{ id: 'a', n: 1 }] }
    const stored = await service.request('POST', '/store?wait=true', { body: store, ...by })
    if (stored.status !== 200) throw new Error(stored.text)
    ticket = stored.body.ticket_id
    const view = { name: `view_${kind}`, source_collections: [kind], query: { select: ['id'] } }
    const made = await service.request('POST', `${at}/views`, { body: view, ...by })
    if (made.status !== 201) throw new Error(made.text)
    const query = { name: `query_${kind}`, source_collection: kind }
    const defined = await service.request('POST', `${at}/queries`, { body: query, ...by })
    if (defined.status !== 201) throw new Error(defined.text)
    await defineApi(service, { app, kind })
  }
  return { app, owner, ticket, credentials: await makeCredentials(service, app, { owner, other }) }
}

/** The service of a scene lets its API collections ask this machine. */
export const allowedUpstreams = [{ host: '127.0.0.1', port: 9 }]

/** Nothing listens at its upstream. */
async function defineApi(
  service: TestService,
  { app, kind }: { readonly app: TestApp; readonly kind: Kind },
): Promise<void> {
  const at = `/api/apps/${app.appId}`
  const upstream = { url: 'http://127.0.0.1:9/' }
  const body = { name: `api_${kind}`, upstream }
  const made = await service.request('POST', `${at}/api-collections`, {
    body,
    headers: app.headers,
  })
  if (made.status !== 201) throw new Error(made.text)
  const access_policy = policies[kind]
  if (access_policy === null) return
  const path = `${at}/collections/api_${kind}`
  const put = await service.request('PUT', path, { body: { access_policy }, headers: app.headers })
  if (put.status !== 200) throw new Error(put.text)
}

/** Endpoints that name the collection in their body, not in their path. */
export const addressedByBody = ['listRecords', 'querySql', 'storeRecords', 'quotePrice']

/** Endpoints that name a view, a query or an API collection; there is one over each kind of collection. */
const addressedByName = [
  'queryView',
  'executeQuery',
  'getQuery',
  'getQueryDocs',
  'getApiCollection',
  'getApiCollectionData',
]

/** Lists the kinds of collection on which the endpoint is tested. */
export function listKinds([operation, route]: readonly [string, Route]): readonly Kind[] {
  const addresses =
    route.path.includes(':collection') ||
    addressedByName.includes(operation) ||
    addressedByBody.includes(operation)
  return addresses ? kinds : ['free']
}

/** The request to an endpoint, and its answer to those who may go on. */
export type Example = {
  readonly requests: readonly Request[]
  readonly success: string
}

/** Values of path parameters that name existing things. */
function parameter(name: string, operation: string, { scene, kind }: { scene: Scene; kind: Kind }) {
  const values: Readonly<Record<string, string>> = {
    app: scene.app.appId,
    collection: kind,
    key: 'a',
    blob: 'blob_of_this_id_is_not_there',
    upload: 'upload_of_this_id_is_not_there',
    name: nameFor(operation, kind),
    height: '1',
    address: scene.owner.address,
    key_hash: '0'.repeat(64),
    pass_id: 'nothing_of_this_id',
    payment_id: 'nothing_of_this_id',
    payout_id: 'nothing_of_this_id',
    id: operation === 'getTask' ? scene.ticket : 'nothing_of_this_id',
  }
  const value = values[name]
  if (value === undefined) throw new Error(`${operation}: add an example of :${name} here`)
  return value
}

function nameFor(operation: string, kind: Kind): string {
  if (/ApiCollection/.test(operation)) return `api_${kind}`
  if (/View$/.test(operation)) return `view_${kind}`
  return /^(execute|get|dryRun)Query/.test(operation) ? `query_${kind}` : 'by_n'
}

/** Query strings of endpoints that need one. */
const queries: Readonly<Record<string, string>> = {
  getEntryProof: '?collection=free&key=a',
  getConsistencyProof: '?from=1&to=1',
}

/** Bodies of endpoints that name their target in the body, and the status of their success. */
const bodies: Readonly<Record<string, (app: string, kind: string) => object>> = {
  listRecords: (app, kind) => ({ root: `${app}::${kind}`, limit: 1 }),
  querySql: (app, kind) => ({ sql: `SELECT * FROM "${app}"::${kind} LIMIT 1` }),
  storeRecords: (app, kind) => ({ root: `${app}::${kind}`, data: [{ id: 'b' }] }),
  quotePrice: (app_id, collection) => ({
    app_id,
    collection,
    operation_type: 'read',
    size_kb: 1,
  }),
}

/** The answer to a caller who may ask for a thing that is not there, or that nobody gives. */
const missing: Readonly<Record<string, string>> = {
  getPayment: '404 PAYMENT_NOT_FOUND',
  getPass: '404 PASS_NOT_FOUND',
  getTransaction: '404 TRANSACTION_NOT_FOUND',
  getReceipt: '404 RECEIPT_NOT_FOUND',
  deleteCollectionIndex: '404 INDEX_NOT_FOUND',
  deleteIndex: '404 INDEX_NOT_FOUND',
  deleteRelation: '404 RELATION_NOT_FOUND',
  deleteGrant: '404 GRANT_NOT_FOUND',
  deleteQuery: '404 QUERY_NOT_FOUND',
  deleteDataSet: '404 DATA_SET_NOT_FOUND',
  getBlob: '404 BLOB_NOT_FOUND',
  deleteBlob: '404 BLOB_NOT_FOUND',
  // The collections here are none of blobs.
  uploadBlob: '409 CONFLICT',
  createUpload: '409 CONFLICT',
  getUpload: '404 UPLOAD_NOT_FOUND',
  continueUpload: '404 UPLOAD_NOT_FOUND',
  finishUpload: '404 UPLOAD_NOT_FOUND',
  cancelUpload: '404 UPLOAD_NOT_FOUND',
  cancelPayout: '404 TRANSACTION_NOT_FOUND',
  rotateKey: '404 KEY_NOT_FOUND',
  revokeKey: '404 KEY_NOT_FOUND',
  revokeGrant: '404 GRANT_NOT_FOUND',
  revokeAuthorization: '404 AUTHORIZATION_NOT_FOUND',
  getDataSet: '404 DATA_SET_NOT_FOUND',
  getApiCollectionData: '502 UPSTREAM_FAILED',
}

export function makeExample(
  [operation, route]: readonly [string, Route],
  { scene, kind }: { scene: Scene; kind: Kind },
): Example {
  const body = bodies[operation]?.(scene.app.appId, kind)
  const raw = body ? JSON.stringify(body) : route.body && unreadable
  const requests = listPaths(route).map((path): Request => {
    const filled = path.replace(/:(\w+)/g, (_, name: string) =>
      name === 'name' && operation === 'deleteCollectionIndex'
        ? 'not_there'
        : parameter(name, operation, { scene, kind }),
    )
    const asked = { method: route.method, path: filled + (queries[operation] ?? '') }
    return raw === undefined ? asked : { ...asked, raw }
  })
  return { requests, success: getSuccess(operation, route, body) }
}

/** Says that a request has no effect, so that everybody may send it in any order. */
export function isRepeatable([operation, route]: readonly [string, Route]): boolean {
  return route.method === 'GET' || route.body !== undefined || missing[operation] !== undefined
}

function getSuccess(operation: string, route: Route, body: object | undefined): string {
  if (missing[operation] !== undefined) return missing[operation]
  if (body === undefined && route.body !== undefined) return '400 VALIDATION_FAILED'
  return String(route.status ?? 200)
}
