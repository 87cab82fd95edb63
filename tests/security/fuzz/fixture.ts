import { makeBuyer, parseEntry } from '../../support/buyer.ts'
import type { Json, TestApp, TestOptions, TestService } from '../../support/service.ts'
import type { FuzzRequest } from './requests.ts'

/** The fixture's API collection asks the service itself, and encrypting costs nothing. */
export const fixtureConfig: NonNullable<TestOptions['config']> = {
  allowedUpstreams: [{ host: '127.0.0.1', port: undefined }],
  encryptionUpdatePrice: 0n,
}

/** The values that the names in `{{ }}` of a request stand for. */
export type Fixture = ReadonlyMap<string, string>

/**
 * Creates applications with collections of every kind of access, keys of every kind, records, and payments to try.
 */
export async function createFixture(service: TestService): Promise<Fixture> {
  const names = new Map<string, string>()
  const [app, other, spare] = [
    await service.createApp(),
    await service.createApp(),
    await service.createApp(),
  ]
  const ask = makeAsker(service, app)
  names.set('app', app.appId).set('other', other.appId).set('spare', spare.appId)
  names.set('operator', service.operatorKey)
  names.set('key.admin', app.key).set('key.foreign', other.key).set('key.spare', spare.key)
  const end = service.world.now() + 60_000
  for (const [name, body] of [...keys, makeEndingKey(end)]) {
    const made = await ask('POST', `/api/apps/${app.appId}/keys`, { name, ...body })
    names.set(`key.${name}`, made.key).set(`hash.${name}`, made.key_hash)
  }
  service.world.advance(60_001)
  const victim = await makeAsker(service, spare)('POST', `/api/apps/${spare.appId}/keys`, {
    name: 'victim',
  })
  names.set('hash.victim', victim.key_hash)
  await ask('POST', `/api/apps/${app.appId}/keys/${names.get('hash.revoked')}/revoke`, {})
  for (const collection of definitions) {
    await ask('POST', `/api/apps/${app.appId}/collections`, collection)
    if (collection.collection_type === 'blob') continue
    const root = `${app.appId}::${collection.name}`
    const stored = await ask('POST', '/store', { root, data: records })
    names.set('ticket', stored.ticket_id)
  }
  await ask('POST', `/api/apps/${app.appId}/indexes`, { collection: 'plain', field_name: 'name' })
  await addThings(service, app, names)
  await addPayments(service, app, names)
  return names
}

/** Makes one of each thing that paths name. */
async function addThings(
  service: TestService,
  app: TestApp,
  names: Map<string, string>,
): Promise<void> {
  const ask = makeAsker(service, app)
  const at = `/api/apps/${app.appId}`
  const sql = `SELECT name, count(*) AS n FROM "${app.appId}"::plain GROUP BY name`
  await ask('POST', `${at}/views`, {
    name: 'summary',
    source_collections: ['plain'],
    query: { select: ['id', 'name'], from: 'plain' },
  })
  await ask('POST', `${at}/queries`, {
    name: 'asked',
    sql: `${sql} HAVING count(*) > :least`,
    parameters: [{ name: 'least', type: 'integer', default: 0 }],
    price: { per_access: '1000' },
  })
  await ask('POST', `${at}/api-collections`, {
    name: 'feed',
    upstream: { url: `${service.url}/health` },
    parameters: [{ name: 'city', default: 'Wien' }],
    price: { per_access: '1000' },
  })
  await ask('POST', `${at}/datasets`, { name: 'cities', kind: 'values', entries: ['Wien', 'Graz'] })
  await ask('POST', `${at}/encryption`, { action: 'add', collections: ['hidden'] })
  for (const [path, body] of [
    ['relations', relation],
    ['grants', { grantee: names.get('other'), collection: 'plain' }],
    ['authorizations', { grantee: 'agent', spend_limit: '5000' }],
  ] as const) {
    const made = await ask('POST', `${at}/${path}`, body)
    names.set(`id.${path}`, made.id ?? made.authorization_id)
  }
  await addBlobs(service, app, names)
}

const relation = {
  parent_collection: 'plain',
  parent_field: 'id',
  child_collection: 'checked',
  child_field: 'name',
}

async function addBlobs(
  service: TestService,
  app: TestApp,
  names: Map<string, string>,
): Promise<void> {
  const path = `${service.url}/api/apps/${app.appId}/blobs/files`
  const form = new FormData()
  form.append('blob', new Blob(['some bytes']), 'file')
  const stored = await fetch(`${path}?wait=true`, {
    ...{ method: 'POST', body: form, headers: app.headers },
  })
  const begun = await fetch(`${path}/uploads`, {
    method: 'POST',
    headers: { ...app.headers, 'tus-resumable': '1.0.0', 'upload-length': '10' },
  })
  const [{ blob_id }, { upload_id }] = (await Promise.all([stored.json(), begun.json()])) as Json[]
  if (blob_id === undefined || upload_id === undefined) throw new Error('fixture: no blobs')
  names.set('blob', blob_id).set('upload', upload_id)
}

/** Fills the fixture's names into the request. */
export function fillRequest(request: FuzzRequest, fixture: Fixture): FuzzRequest {
  const fill = (text: string) =>
    text.replace(/\{\{([\w.]+)\}\}/g, (whole, name: string) =>
      name === 'seconds' ? String(Math.floor(Date.now() / 1000)) : (fixture.get(name) ?? whole),
    )
  return {
    ...request,
    path: fill(request.path),
    headers: Object.fromEntries(
      Object.entries(request.headers).map(([name, value]) => [name, fill(value)]),
    ),
    // A payload is JSON in itself, so it goes in without the quotes around its name.
    ...(request.body !== undefined && {
      body: fill(request.body.replaceAll('"{{payload.1}}"', '{{payload.1}}')),
    }),
  }
}

const keys: readonly (readonly [string, object])[] = [
  ['read', { permissions: ['Read'] }],
  ['write', { permissions: ['Write'] }],
  ['revoked', { permissions: ['Admin'] }],
]

const makeEndingKey = (endMs: number) =>
  ['expired', { permissions: ['Admin'], expires_at: new Date(endMs).toISOString() }] as const

const definitions = [
  { name: 'plain' },
  { name: 'keyed', access_policy: 'key' },
  { name: 'sealed', access_policy: 'private' },
  { name: 'priced', access_policy: { price: { per_access: '1000' } } },
  { name: 'rows', access_policy: { price: { per_row: '10' } } },
  { name: 'kilobytes', access_policy: { price: { per_kb: '10' }, empty_answer: 'free' } },
  { name: 'events', collection_type: 'event' },
  { name: 'files', collection_type: 'blob' },
  { name: 'hidden', schema_definition: { fields: { name: { type: 'string' } } } },
  {
    name: 'checked',
    schema_definition: { fields: { name: { type: 'string', index: true } } },
  },
]

const records = ['k1', 'k2', 'k3', 'ä/ö'].map((id, at) => ({
  id,
  name: ['Wien', 'Graz', 'Linz', 'Salzburg'][at],
  population: 100_000 + at,
  tags: ['a', 7],
  address: { city: 'Wien' },
}))

function makeAsker(service: TestService, app: TestApp) {
  return async (method: string, path: string, body: object): Promise<Json> => {
    const reply = await service.request(method, path, { body, headers: app.headers })
    if (reply.status >= 300) throw new Error(`fixture: ${method} ${path}: ${reply.text}`)
    return reply.body
  }
}

/** Signed payments for two priced reads; nobody has the money for them, which is the buyer's own trouble. */
async function addPayments(
  service: TestService,
  app: TestApp,
  names: Map<string, string>,
): Promise<void> {
  const buyer = makeBuyer()
  names.set('payer', buyer.address).set('payment', '0'.repeat(32)).set('receipt', '0'.repeat(32))
  for (const [at, collection] of ['priced', 'kilobytes'].entries()) {
    const required = await service.request('POST', '/list', {
      body: { root: `${app.appId}::${collection}` },
    })
    if (required.status !== 402) throw new Error(`fixture: no price: ${required.text}`)
    const v1 = (await buyer.payV1(required))['x-payment'] ?? ''
    const v2 = (await buyer.payV2(required))['payment-signature'] ?? ''
    names.set(`v1.${at + 1}`, v1).set(`v2.${at + 1}`, v2)
    if (parseEntry(required) === undefined) throw new Error('fixture: a 402 without a way to pay')
    if (at === 0) names.set('payload.1', Buffer.from(v1, 'base64').toString())
  }
}
