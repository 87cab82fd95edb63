import { createHash } from 'node:crypto'
import { generatePrivateKey, privateKeyToAccount } from 'viem/accounts'
import { describe, expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { makeTestWallet } from '../support/wallet.ts'

describe('applications', () =>
  withService((service) => {
    const create = (body: object, headers: Readonly<Record<string, string>> = service().operator) =>
      service().request('POST', '/api/apps', { body, headers })

    test('the operator creates one: a made id, a first key that works, its hash and not its text kept', async () => {
      const { status, body } = await create({ name: 'Shop' })
      expect(status).toBe(201)
      expect(body.app_id).toMatch(/^app_[0-9a-f]{16}$/)
      expect(body.app_key).toMatch(/^app_[0-9A-Za-z]{43}$/)
      expect(body.owner_address).toBeNull()
      const listed = await service().request('GET', `/api/apps/${body.app_id}/keys`, {
        headers: { 'x-app-key': body.app_key },
      })
      expect(listed.body.keys).toMatchObject([
        { key_hash: body.key_hash, name: 'default', permissions: ['Read', 'Write', 'Admin'] },
      ])
      expect(listed.text).not.toContain(body.app_key)
    })

    test('an id is taken once, and `system` never', async () => {
      expect((await create({ name: 'One', app_id: 'taken-once' })).status).toBe(201)
      expect(await create({ name: 'Two', app_id: 'taken-once' })).toMatchObject({
        status: 409,
        body: { code: 'APPLICATION_EXISTS' },
      })
      expect((await create({ name: 'System', app_id: 'system' })).status).toBe(409)
    })

    test('of twenty creations of one id at once exactly one succeeds', async () => {
      const replies = await Promise.all(
        Array.from({ length: 20 }, () => create({ name: 'Race', app_id: 'raced-for' })),
      )
      expect(replies.map(({ status }) => status).sort()).toEqual([201, ...Array(19).fill(409)])
    })

    test.each(['ab', '1abc', 'Abc', 'a b c', `a${'b'.repeat(63)}`, 'a::b', ''])(
      'the id %j is refused, naming the field',
      async (appId) => {
        const { status, body } = await create({ name: 'Odd', app_id: appId })
        expect(status).toBe(400)
        expect(body.details.field).toBe('/app_id')
      },
    )

    test('the longest id is accepted', async () => {
      expect((await create({ name: 'Long', app_id: `a${'b'.repeat(62)}` })).status).toBe(201)
    })

    test('nobody but the operator or a wallet creates one', async () => {
      const app = await service().createApp()
      expect((await create({ name: 'No' }, {})).status).toBe(401)
      expect((await create({ name: 'No' }, { 'x-app-key': 'app_unknown' })).status).toBe(401)
      expect((await create({ name: 'No' }, app.headers)).status).toBe(403)
    })

    test('strangers see the public fields, keys of the application also owner and counts', async () => {
      const app = await service().createApp()
      const path = `/api/apps/${app.appId}`
      const open = ['app_id', 'created_at', 'description', 'name', 'status']
      const stranger = await service().request('GET', path)
      expect(Object.keys(stranger.body).sort()).toEqual(open)
      const other = await service().createApp()
      const buyer = await service().request('GET', path, { headers: other.headers })
      expect(Object.keys(buyer.body).sort()).toEqual(open)
      const insider = await service().request('GET', path, { headers: app.headers })
      expect(insider.body).toMatchObject({ ...stranger.body, owner_address: null, collections: 0 })
      const alias = await service().request('GET', `/api/applications/${app.appId}`)
      expect(alias.body).toEqual(stranger.body)
    })

    test('a change shows at once; fields that are not there are refused', async () => {
      const app = await service().createApp()
      const patch = (body: object) =>
        service().request('PATCH', `/api/apps/${app.appId}`, { body, headers: app.headers })
      expect((await patch({ name: 'New', description: 'What it is' })).body).toMatchObject({
        name: 'New',
        description: 'What it is',
      })
      expect((await patch({ description: null })).body).toMatchObject({
        name: 'New',
        description: null,
      })
      expect((await patch({ app_id: 'other' })).status).toBe(400)
      expect((await patch({ owner_address: 'not an address' })).status).toBe(400)
    })

    test('an archived application answers 404 everywhere, and its id stays taken', async () => {
      const app = await service().createApp()
      await service().request('POST', '/store?wait=true', {
        body: { root: `${app.appId}::notes`, data: [{ id: 'a' }] },
        headers: app.headers,
      })
      const path = `/api/apps/${app.appId}`
      const archived = await service().request('DELETE', path, { headers: app.headers })
      expect(archived.body.success).toBe(true)
      const reads: [string, string, object?][] = [
        ['GET', path],
        ['GET', `${path}/collections`],
        ['GET', `${path}/keys`],
        ['GET', `${path}/chain/checkpoint`],
        ['POST', '/list', { root: `${app.appId}::notes` }],
        ['POST', '/store', { root: `${app.appId}::notes`, data: [{ id: 'b' }] }],
        ['DELETE', path],
      ]
      for (const [method, url, body] of reads) {
        const { status } = await service().request(method, url, {
          ...(body && { body }),
          headers: app.headers,
        })
        expect(status, `${method} ${url}`).toBe(404)
      }
      expect((await create({ name: 'Again', app_id: app.appId })).status).toBe(409)
    })

    test('the operator lists all', async () => {
      const app = await service().createApp()
      const { body } = await service().request('GET', '/api/apps', { headers: service().operator })
      expect(body.applications).toContainEqual(expect.objectContaining({ app_id: app.appId }))
      expect((await service().request('GET', '/api/apps')).status).toBe(401)
    })

    test('stats count what is there', async () => {
      const app = await service().createApp()
      await service().request('POST', '/store?wait=true', {
        body: { root: `${app.appId}::notes`, data: [{ id: 'a' }, { id: 'b' }] },
        headers: app.headers,
      })
      const { body } = await service().request('GET', `/api/apps/${app.appId}/stats`, {
        headers: app.headers,
      })
      expect(body).toMatchObject({ total_collections: 1, total_documents: 2, storage_size: 20 })
    })
  }))

const open = { config: { registration: 'open' } } as const

describe('an owner without a key', () =>
  withService((service) => {
    const now = () => Math.floor(service().world.now() / 1000)
    const body = JSON.stringify({ name: 'Signed' })

    test('a wallet that signs the request becomes the owner, lists its own and administers it', async () => {
      const wallet = makeTestWallet()
      const created = await signedCreate(service(), wallet, { body, timestamp: now() })
      expect(created.status).toBe(201)
      expect(created.body.owner_address).toBe(wallet.address)
      await service().createApp()
      const list = await service().request('GET', '/api/apps', {
        headers: await wallet.sign({
          origin: service().url,
          method: 'GET',
          path: '/api/apps',
          timestamp: now(),
        }),
      })
      expect(list.body.applications).toMatchObject([
        { app_id: created.body.app_id, owner_address: wallet.address },
      ])
      const keys = `/api/apps/${created.body.app_id}/tasks?limit=1`
      const sign = { origin: service().url, method: 'GET', path: keys, timestamp: now() }
      const owned = await service().request('GET', keys, { headers: await wallet.sign(sign) })
      expect(owned.status).toBe(200)
      const thief = await service().request('GET', keys, {
        headers: await makeTestWallet().sign(sign),
      })
      expect(thief.status).toBe(401)
    })

    test('a signature counts once', async () => {
      const wallet = makeTestWallet()
      const headers = await wallet.sign({
        origin: service().url,
        method: 'POST',
        path: '/api/apps',
        body,
        timestamp: now(),
      })
      const send = () => service().request('POST', '/api/apps', { raw: body, headers })
      const replies = await Promise.all([send(), send(), send()])
      expect(replies.map(({ status }) => status).sort()).toEqual([201, 401, 401])
      expect((await send()).status).toBe(401)
    })

    test.each([-301, 301])('a signature of %d seconds away is refused', async (seconds) => {
      const timestamp = now() + seconds
      const reply = await signedCreate(service(), makeTestWallet(), { body, timestamp })
      expect(reply).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
    })

    test('a signature within five minutes is accepted', async () => {
      const timestamp = now() - 290
      expect((await signedCreate(service(), makeTestWallet(), { body, timestamp })).status).toBe(
        201,
      )
    })

    test('a signature over another method, path, body or time, or by another wallet, is refused', async () => {
      const wallet = makeTestWallet()
      const timestamp = now()
      const right = { origin: service().url, method: 'POST', path: '/api/apps', body, timestamp }
      const wrong = [
        { ...right, method: 'PUT' },
        { ...right, path: '/api/apps?x=1' },
        { ...right, body: JSON.stringify({ name: 'Other' }) },
        { ...right, timestamp: timestamp - 1 },
        { ...right, origin: 'https://another.example' },
        { ...right, origin: service().url.replace('http:', 'https:') },
        { ...right, origin: service().url.replace(/\d+$/, '1') },
      ]
      for (const request of wrong) {
        const signed = await wallet.sign(request)
        const headers = { ...signed, 'x-timestamp': String(timestamp) }
        const { status } = await service().request('POST', '/api/apps', { raw: body, headers })
        expect(status).toBe(401)
      }
      const other = {
        ...(await wallet.sign(right)),
        'x-wallet-address': makeTestWallet().address,
      }
      const { status } = await service().request('POST', '/api/apps', { raw: body, headers: other })
      expect(status).toBe(401)
      const garbage = { ...(await wallet.sign(right)), 'x-signature': '0x1234' }
      expect(
        (await service().request('POST', '/api/apps', { raw: body, headers: garbage })).status,
      ).toBe(401)
    })

    test('a signature that names no service is refused, with the text to sign', async () => {
      const account = privateKeyToAccount(generatePrivateKey())
      const path = '/api/apps?api%5Fkey='
      const { body: known } = await service().request('GET', '/.well-known/tollbase')
      expect(known.origin).toBe(service().url)
      const timestamp = String(now())
      const rest = `POST\n${path}\n${timestamp}\n${createHash('sha256').update(body).digest('hex')}`
      const ask = async (message: string) =>
        service().request('POST', path, {
          raw: body,
          headers: {
            'x-wallet-address': account.address,
            'x-timestamp': timestamp,
            'x-signature': await account.signMessage({ message }),
          },
        })
      const old = await ask(`tollbase\n${rest}`)
      expect(old).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
      const wanted = `tollbase ${known.origin}\n${rest}`
      // A key in the address is not shown; here there is none to hide.
      expect(old.body.details.text_to_sign).toBe(wanted.replace('api%5Fkey=', 'api_key=***'))
      expect(old.body.error).toContain(JSON.stringify(old.body.details.text_to_sign))
      expect((await ask(wanted)).status).toBe(201)
    })

    test('an owner address that did not sign is refused', async () => {
      const claimed = JSON.stringify({ name: 'Signed', owner_address: makeTestWallet().address })
      const reply = await signedCreate(service(), makeTestWallet(), {
        body: claimed,
        timestamp: now(),
      })
      expect(reply).toMatchObject({ status: 400, body: { details: { field: '/owner_address' } } })
    })
  }, open))

describe('where the operator alone registers applications, which is what a service does unless told otherwise', () =>
  withService((service) => {
    test('a wallet is told so, before anything of its request is judged, and makes nothing', async () => {
      expect(service().config.registration).toBe('operator')
      const timestamp = Math.floor(service().world.now() / 1000)
      for (const body of ['{"name":"Signed","app_id":"signed"}', '{"nonsense":1}']) {
        const reply = await signedCreate(service(), makeTestWallet(), { body, timestamp })
        expect(reply).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
        expect(reply.body.error).toContain('Only the operator of this service registers')
      }
      const nobody = await service().request('POST', '/api/apps', { body: { name: 'x' } })
      expect(nobody.status).toBe(401)
      expect((await service().request('GET', '/api/apps/signed')).status).toBe(404)
    })
  }))

async function signedCreate(
  service: TestService,
  wallet: ReturnType<typeof makeTestWallet>,
  { body, timestamp }: { body: string; timestamp: number },
) {
  const headers = await wallet.sign({
    origin: service.url,
    method: 'POST',
    path: '/api/apps',
    body,
    timestamp,
  })
  return service.request('POST', '/api/apps', { raw: body, headers })
}
