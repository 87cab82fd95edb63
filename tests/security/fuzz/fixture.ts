import { makeBuyer, parseEntry } from '../../payments/buyer.ts'
import type { Json, TestApp, TestService } from '../../support/service.ts'
import type { FuzzRequest } from './requests.ts'

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
  for (const [name, body] of keys) {
    const made = await ask('POST', `/api/apps/${app.appId}/keys`, { name, ...body })
    names.set(`key.${name}`, made.key).set(`hash.${name}`, made.key_hash)
  }
  const victim = await makeAsker(service, spare)('POST', `/api/apps/${spare.appId}/keys`, {
    name: 'victim',
  })
  names.set('hash.victim', victim.key_hash)
  await ask('POST', `/api/apps/${app.appId}/keys/${names.get('hash.revoked')}/revoke`, {})
  for (const collection of definitions) {
    await ask('POST', `/api/apps/${app.appId}/collections`, collection)
    const root = `${app.appId}::${collection.name}`
    const stored = await ask('POST', '/store', { root, data: records })
    names.set('ticket', stored.ticket_id)
  }
  await ask('POST', `/api/apps/${app.appId}/indexes`, { collection: 'plain', field_name: 'name' })
  await addPayments(service, app, names)
  return names
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
  ['expired', { permissions: ['Admin'], expires_at: '2020-01-01T00:00:00.000Z' }],
  ['revoked', { permissions: ['Admin'] }],
]

const definitions = [
  { name: 'plain' },
  { name: 'keyed', access_policy: 'key' },
  { name: 'sealed', access_policy: 'private' },
  { name: 'priced', access_policy: { price: { per_access: '1000' } } },
  { name: 'rows', access_policy: { price: { per_row: '10' } } },
  { name: 'kilobytes', access_policy: { price: { per_kb: '10' }, empty_answer: 'free' } },
  { name: 'events', collection_type: 'event' },
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
