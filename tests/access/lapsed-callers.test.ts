import { expect, test, vi } from 'vitest'
import type { Mutex } from '../../packages/server/src/base/mutex.ts'
import { createData } from '../support/data.ts'
import { holdChanges, makeKeyCalls } from '../support/keys.ts'
import { withService } from '../support/per-engine.ts'
import { askSigned, makeTestWallet } from '../support/wallet.ts'

withService((service) => {
  /** Counts what waits for its turn from now on, or has had it. */
  function countTurns(turns: Mutex): () => number {
    const run = vi.spyOn(turns, 'run')
    const before = run.mock.calls.length
    return () => run.mock.calls.length - before
  }

  test('whatever a stolen key has asked for is refused where the key is revoked before its turn', async () => {
    const { create, post, use } = makeKeyCalls(service())
    const [app, thief] = [await service().createApp(), makeTestWallet()]
    const at = `/api/apps/${app.appId}`
    const stolen = (await create(app, { permissions: ['Admin'] })).body
    const headers = { 'x-app-key': stolen.key }
    const body = { grantee: 'an agent', spend_limit: '5' }
    const { id, user_key: userKey } = (await post(`${at}/authorizations`, app.headers, body)).body
    const { definitions } = service().running.service.tenants.system
    const goOn = holdChanges(service())
    const count = countTurns(definitions)
    const owner = { owner_address: thief.address }
    const asked = [
      askSigned(service(), thief, { method: 'PATCH', path: at, body: owner, headers }),
      service().request('PATCH', at, { body: { name: 'mine' }, headers }),
      service().request('DELETE', at, { headers }),
      post(`${at}/payout/settings`, headers, { direct_settlement: true }),
      post(`${at}/keys/${app.keyHash}/revoke`, headers),
      post(`${at}/keys`, headers, { permissions: ['Admin'] }),
      post(`${at}/authorizations`, headers, body),
      post(`${at}/authorizations/${id}/revoke`, headers),
    ]
    await expect.poll(count).toBe(asked.length)
    const revoking = post(`${at}/keys/${stolen.key_hash}/revoke`, service().operator)
    await expect.poll(() => use(app, stolen.key)).toBe(401)
    await goOn()
    expect((await revoking).status).toBe(200)
    for (const one of asked) expect(await one).toMatchObject({ status: 401 })
    expect(await use(app, app.key)).toBe(200)
    const user = { headers: { 'x-user-key': userKey } }
    expect((await service().request('GET', '/health', user)).status).toBe(200)
    const { owner_address: is, name } = (
      await service().request('GET', at, { headers: app.headers })
    ).body
    expect(is).not.toBe(thief.address)
    expect(name).not.toBe('mine')
  })

  test('data that a stolen key opens or gives away stays closed where the key is revoked before its turn', async () => {
    const [app, other] = [await createData(service()), await createData(service())]
    expect((await app.create({ name: 'sales' })).status).toBe(201)
    await app.store('sales', [{ id: 1 }])
    const { create, post, use } = makeKeyCalls(service())
    const stolen = (await create(app, { permissions: ['Admin'] })).body
    const { definitions } = await service().running.service.tenants.load(app.appId)
    const at = `/api/apps/${app.appId}`
    const headers = { 'x-app-key': stolen.key }
    const view = { name: 'all', source_collections: ['sales'], public: true }
    const query = { name: 'all', sql: `SELECT id FROM "${app.appId}"::sales` }
    const opened = { access_policy: 'public' }
    let isRevoked = false
    const held = definitions.run(() => expect.poll(() => isRevoked).toBe(true))
    const count = countTurns(definitions)
    const asked = [
      post(`${at}/grants`, headers, { grantee: other.appId, collection: 'sales' }),
      service().request('PUT', `${at}/collections/sales`, { body: opened, headers }),
      service().request('PUT', `${at}/pricing`, { body: { rules: [] }, headers }),
      post(`${at}/views`, headers, { ...view, query: { select: ['id'] } }),
      post(`${at}/queries`, headers, query),
    ]
    await expect.poll(count).toBe(asked.length)
    await post(`${at}/keys/${stolen.key_hash}/revoke`, app.headers)
    expect(await use(app, stolen.key)).toBe(401)
    isRevoked = true
    await held
    for (const one of asked) expect(await one).toMatchObject({ status: 401 })
    expect((await app.call('GET', '/grants')).body.grants).toEqual([])
    expect((await app.listOpenly('sales')).status).not.toBe(200)
  })

  test('a wallet that is no owner any more when its turn comes makes no key', async () => {
    const { list } = makeKeyCalls(service())
    const [app, owner, thief] = [await service().createApp(), makeTestWallet(), makeTestWallet()]
    const path = `/api/apps/${app.appId}`
    const back = { owner_address: owner.address }
    await service().request('PATCH', path, { headers: service().operator, body: back })
    const body = { owner_address: thief.address }
    const naming = { method: 'PATCH', path, body, headers: app.headers }
    expect((await askSigned(service(), thief, naming)).status).toBe(200)
    const goOn = holdChanges(service())
    const count = countTurns(service().running.service.tenants.system.definitions)
    const taking = askSigned(service(), owner, { method: 'PATCH', path, body: back })
    await expect.poll(count).toBe(1)
    const asked = { path: `${path}/keys`, body: { permissions: ['Admin'] } }
    const making = askSigned(service(), thief, { method: 'POST', ...asked })
    await expect.poll(count).toBe(2)
    await goOn()
    expect((await taking).status).toBe(200)
    expect((await making).status).toBe(401)
    expect(await list(app)).toHaveLength(1)
  })

  test('a key that ends itself, twice at once, while other changes wait, is ended', async () => {
    const { create, post, use } = makeKeyCalls(service())
    const app = await service().createApp()
    const { key, key_hash } = (await create(app, { permissions: ['Admin'] })).body
    const goOn = holdChanges(service())
    const path = `/api/apps/${app.appId}/keys/${key_hash}/revoke`
    const revoking = [post(path, { 'x-app-key': key }), post(path, { 'x-app-key': key })]
    await expect.poll(() => use(app, key)).toBe(401)
    await goOn()
    const statuses = (await Promise.all(revoking)).map(({ status }) => status)
    // One of them may have come when the key was dead already.
    expect(statuses).toContain(200)
    for (const status of statuses) expect([200, 401]).toContain(status)
    expect(await use(app, key)).toBe(401)
  })
})
