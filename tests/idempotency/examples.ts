import { createHash } from 'node:crypto'
import type { OperationId } from '@tollbase/contract/contract'
import { ask, depositing, quote } from '../support/buyer.ts'
import { createData } from '../support/data.ts'
import { blockTransfers } from '../support/payer.ts'
import { askSigned } from '../support/wallet.ts'
import { type Example, type Scene, sell, send } from './scene.ts'

let made = 0
const makeName = (): string => {
  made += 1
  return `made_${made}`
}

type Make = (scene: Scene) => Promise<Example> | Example
type Changing = Exclude<OperationId, `get${string}` | `list${string}` | `query${string}`>

const at = ({ app }: Scene, path = '') => `/api/apps/${app.appId}${path}`
const needs = async (scene: Scene, path: string, body: object) => {
  const reply = await scene.app.call('POST', path, body)
  if (reply.status >= 300) throw new Error(`${path}: ${reply.text}`)
  return reply.body
}
const makeView = async (scene: Scene) => {
  const name = makeName()
  await needs(scene, '/views', { name, source_collections: ['c'], query: { select: ['id'] } })
  return name
}
const makeKey = async (scene: Scene) => (await needs(scene, '/keys', { name: makeName() })).key_hash
const makeIndex = async (scene: Scene) => {
  const name = makeName()
  return needs(scene, '/indexes', { collection: 'c', field_name: `f_${name}`, name })
}
const makeGrant = async (scene: Scene) => {
  const other = await createData(scene.service)
  return (await needs(scene, '/grants', { grantee: other.appId, collection: 'c' })).id
}
const beginUpload = async (scene: Scene) => {
  const path = at(scene, '/blobs/files/uploads')
  const begun = await send(scene, { path, headers: { 'upload-length': '5' } })
  return `${path}/${begun.body.upload_id}`
}
const sendBytes = (scene: Scene, path: string) =>
  send(scene, {
    ...{ method: 'PATCH', path, raw: 'bytes' },
    headers: { 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
  })
const makeSet = (name: string) => ({ name, kind: 'values', entries: ['x'] })
const upstream = { url: 'http://127.0.0.1:9/' }
const rule = { target: { collection: 'c' }, operation: 'read', model: 'per_row', amount: '5' }
const pass = { target: { collection: 'sold' }, hours: 24 }

/** A first request to each operation that changes something; one without a row fails the test. */
export const examples: Readonly<Partial<Record<Changing, Make>>> = {
  createApplication: () => ({ path: '/api/apps', body: { name: 'Made' }, by: 'operator' }),
  updateApplication: (scene) => ({ method: 'PATCH', path: at(scene), body: { name: 'Named' } }),
  archiveApplication: async ({ service }) => {
    const { appId } = await createData(service)
    return { method: 'DELETE', path: `/api/apps/${appId}`, by: 'operator' }
  },
  createKey: (scene) => ({ path: at(scene, '/keys'), body: { name: makeName() } }),
  regenerateKey: (scene) => ({
    path: at(scene, '/regenerate-key'),
    body: { name: makeName() },
    by: 'owner',
  }),
  rotateKey: async (scene) => ({
    path: at(scene, `/keys/${await makeKey(scene)}/rotate`),
    body: {},
  }),
  revokeKey: async (scene) => ({ path: at(scene, `/keys/${await makeKey(scene)}/revoke`) }),
  createCollection: (scene) => ({ path: at(scene, '/collections'), body: { name: makeName() } }),
  updateCollection: async (scene) => {
    const name = makeName()
    await scene.app.create({ name })
    const body = { access_policy: 'public' }
    return { method: 'PUT', path: at(scene, `/collections/${name}`), body }
  },
  deleteCollection: async (scene) => {
    const name = makeName()
    await scene.app.create({ name })
    return { method: 'DELETE', path: at(scene, `/collections/${name}`) }
  },
  setSharding: (scene) => ({
    method: 'PATCH',
    path: at(scene, '/collections/c/sharding'),
    body: { keys: [{ field: 'n', type: 'discrete' }] },
  }),
  migrateCollection: (scene) => ({
    path: at(scene, '/collections/c/migrate'),
    body: { schema: { fields: { kind: { type: 'string', default: 'plain' } } } },
  }),
  createApiCollection: (scene) => ({
    path: at(scene, '/api-collections'),
    body: { name: makeName(), upstream },
  }),
  updateApiCollection: async (scene) => {
    const name = makeName()
    await needs(scene, '/api-collections', { name, upstream })
    const body = { upstream, description: 'other' }
    return { method: 'PUT', path: at(scene, `/api-collections/${name}`), body }
  },
  storeRecords: ({ app }) => ({
    path: '/store',
    body: { root: `${app.appId}::c`, data: [{ id: makeName(), kind: 'plain' }] },
  }),
  executeBatch: (scene) => ({
    path: at(scene, '/batch'),
    body: {
      operations: [
        { operation: 'create', collection: 'c', data: { id: makeName(), kind: 'plain' } },
      ],
    },
  }),
  uploadBlob: (scene) => {
    const raw = '--x\r\nContent-Disposition: form-data; name="blob"\r\n\r\nhello\r\n--x--\r\n'
    const digest = createHash('sha256').update(raw).digest('base64')
    const headers = {
      'content-type': 'multipart/form-data; boundary=x',
      'content-digest': `sha-256=:${digest}:`,
    }
    return { path: at(scene, '/blobs/files'), raw, headers }
  },
  createUpload: (scene) => ({
    path: at(scene, '/blobs/files/uploads'),
    headers: { 'upload-length': '5' },
  }),
  continueUpload: async (scene) => {
    const headers = {
      'content-type': 'application/offset+octet-stream',
      'upload-offset': '0',
      'content-digest': `sha-256=:${createHash('sha256').update('hello').digest('base64')}:`,
    }
    return { method: 'PATCH', path: await beginUpload(scene), raw: 'hello', headers }
  },
  finishUpload: async (scene) => {
    const path = await beginUpload(scene)
    await sendBytes(scene, path)
    return { path: `${path}/finish` }
  },
  cancelUpload: async (scene) => ({ method: 'DELETE', path: await beginUpload(scene) }),
  deleteBlob: async (scene) => {
    const form = new FormData()
    form.append('blob', makeName())
    const path = at(scene, '/blobs/files')
    const { headers } = scene.app
    const sent = await fetch(`${scene.service.url}${path}?wait=true`, {
      ...{ method: 'POST', body: form, headers },
    })
    const { blob_id } = JSON.parse(await sent.text())
    return { method: 'DELETE', path: `${path}/${blob_id}` }
  },
  createQuery: (scene) => ({
    path: at(scene, '/queries'),
    body: { name: makeName(), source_collection: 'c' },
  }),
  deleteQuery: async (scene) => {
    const name = makeName()
    await needs(scene, '/queries', { name, source_collection: 'c' })
    return { method: 'DELETE', path: at(scene, `/queries/${name}`) }
  },
  createIndex: (scene) => ({
    path: at(scene, '/indexes'),
    body: { collection: 'c', field_name: makeName() },
  }),
  createCollectionIndex: (scene) => ({
    path: at(scene, '/collections/c/indexes'),
    body: { field: makeName(), name: makeName() },
  }),
  deleteCollectionIndex: async (scene) => {
    const { name } = await makeIndex(scene)
    return { method: 'DELETE', path: at(scene, `/collections/c/indexes/${name}`) }
  },
  deleteIndex: async (scene) => {
    const { id } = await makeIndex(scene)
    return { method: 'DELETE', path: at(scene, `/indexes/${id}`) }
  },
  rebuildIndex: async (scene) => {
    const { name } = await makeIndex(scene)
    return { path: at(scene, `/collections/c/indexes/${name}/rebuild`) }
  },
  createRelation: (scene) => ({ path: at(scene, '/relations'), body: relate() }),
  deleteRelation: async (scene) => {
    const { id } = await needs(scene, '/relations', relate())
    return { method: 'DELETE', path: at(scene, `/relations/${id}`) }
  },
  createView: (scene) => ({
    path: at(scene, '/views'),
    body: { name: makeName(), source_collections: ['c'], query: { select: ['id'] } },
  }),
  createViewFromSql: (scene) => ({
    path: at(scene, '/views/sql'),
    body: {
      sql: `CREATE MATERIALIZED VIEW "${scene.app.appId}"::${makeName()} AS SELECT id FROM "${scene.app.appId}"::c`,
    },
  }),
  deleteView: async (scene) => ({
    method: 'DELETE',
    path: at(scene, `/views/${await makeView(scene)}`),
  }),
  refreshView: async (scene) => ({ path: at(scene, `/views/${await makeView(scene)}/refresh`) }),
  createGrant: async (scene) => {
    const other = await createData(scene.service)
    return { path: at(scene, '/grants'), body: { grantee: other.appId, collection: 'c' } }
  },
  revokeGrant: async (scene) => ({ path: at(scene, `/grants/${await makeGrant(scene)}/revoke`) }),
  deleteGrant: async (scene) => ({
    method: 'DELETE',
    path: at(scene, `/grants/${await makeGrant(scene)}`),
  }),
  createDataSet: (scene) => ({ path: at(scene, '/datasets'), body: makeSet(makeName()) }),
  deleteDataSet: async (scene) => {
    const name = makeName()
    await needs(scene, '/datasets', makeSet(name))
    return { method: 'DELETE', path: at(scene, `/datasets/${name}`) }
  },
  updateEncryption: async (scene) => {
    const name = makeName()
    await scene.app.create({ name })
    return { path: at(scene, '/encryption'), body: { action: 'add', collections: [name] } }
  },
  setRetention: (scene) => ({
    path: at(scene, '/collections/c/retention'),
    body: { retention_days: 30 },
  }),
  eraseSubject: (scene) => ({
    path: at(scene, '/collections/c/erase'),
    body: { field: 'person', value: 'p' },
  }),
  setPricing: (scene) => ({
    method: 'PUT',
    path: at(scene, '/pricing'),
    body: {
      rules: [rule, { ...rule, ...pass, model: 'time_pass', amount: '2000' }],
      confirm_free: [{ collection: 'sold' }],
    },
  }),
  updatePricing: (scene) => ({
    method: 'PATCH',
    path: at(scene, '/pricing'),
    body: { set: [{ ...rule, amount: '6' }] },
  }),
  buyPass: async (scene) => {
    const set = [{ ...rule, ...pass, model: 'time_pass', amount: '2000' }]
    await scene.app.call('PATCH', '/pricing', { set })
    return { path: at(scene, '/passes'), body: pass, payer: scene.buyer }
  },
  settlePayment: async ({ service, buyer }) => {
    const required = await quote(service, depositing(buyer.address, '1000'))
    const header = (await buyer.payV2(required))['payment-signature'] ?? ''
    const payload = JSON.parse(Buffer.from(header, 'base64').toString())
    const body = {
      x402Version: 2,
      paymentPayload: payload,
      paymentRequirements: payload.accepted,
    }
    return { path: '/api/payments/settle', body, by: 'nobody' }
  },
  depositToWallet: ({ buyer }) => ({
    path: `/api/wallets/${buyer.address}/deposit`,
    body: { amount: '50000' },
    payer: buyer,
  }),
  depositToApplication: (scene) => ({
    path: at(scene, '/wallet/deposit'),
    body: { amount: '50000' },
    payer: scene.buyer,
  }),
  withdrawFromWallet: async ({ service, buyer }) => {
    const asked = depositing(buyer.address, '50000')
    await ask(service, asked, await buyer.payV2(await quote(service, asked)))
    const path = `/api/wallets/${buyer.address}/withdraw`
    return { path, body: { amount: '10000' }, by: 'owner' }
  },
  withdrawFromApplication: (scene) => ({
    path: at(scene, '/wallet/withdraw'),
    body: { amount: '10000' },
  }),
  withdrawFromPlatform: ({ owner }) => ({
    path: '/api/platform/wallet/withdraw',
    body: { amount: '10000', destination: owner.address },
    by: 'operator',
  }),
  releaseHeldPayments: () => ({
    path: '/api/platform/held/release',
    body: { all: true },
    by: 'operator',
  }),
  createAuthorization: (scene) => ({
    path: at(scene, '/authorizations'),
    body: { grantee: 'an agent', spend_limit: '5000' },
    by: 'owner',
  }),
  revokeAuthorization: async (scene) => {
    const path = at(scene, '/authorizations')
    const body = { grantee: 'an agent', spend_limit: '5000' }
    const granted = await askSigned(scene.service, scene.owner, { method: 'POST', path, body })
    return { path: `${path}/${granted.body.id}/revoke`, by: 'owner' }
  },
  setPayoutSettings: (scene) => ({
    path: at(scene, '/payout/settings'),
    body: { min_payout: '10000' },
  }),
  requestPayout: (scene) => ({ path: at(scene, '/payout/request'), body: { amount: '10000' } }),
  cancelPayout: async (scene) => {
    // It stays, since the token refuses it.
    await blockTransfers(scene.service, scene.owner.address)
    const { payout_id } = await needs(scene, '/payout/request', { amount: '10000' })
    return { path: at(scene, `/payout/${payout_id}/cancel`) }
  },
  refundSale: async (scene) => ({
    path: at(scene, `/sales/${await sell(scene)}/refund`),
    body: { amount: '500' },
  }),
  requestFaucet: ({ buyer }) => ({
    path: '/devnet/faucet',
    body: { address: buyer.address, amount: '1000' },
    by: 'nobody',
  }),
}

function relate() {
  return {
    ...{ parent_collection: 'c', parent_field: 'id', child_collection: 'sold' },
    ...{ child_field: makeName() },
  }
}
