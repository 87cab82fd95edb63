import { withService } from '@tollbase/testing/per-engine'
import { createSigned, makeTestWallet } from '@tollbase/testing/wallet'
import { describe, expect, test } from 'vitest'

describe('createApplication', () =>
  withService((service) => {
    const create = (body: object, headers: Readonly<Record<string, string>> = service().operator) =>
      service().request('POST', '/api/apps', { body, headers })

    test("the operator creates an application: its id is made, its first key works, and the key's hash is kept, not its text", async () => {
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

    test('exactly one of twenty creations of one id at once succeeds', async () => {
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

    test('nobody but the operator or a wallet creates an application', async () => {
      const app = await service().createApp()
      expect((await create({ name: 'No' }, {})).status).toBe(401)
      expect((await create({ name: 'No' }, { 'x-app-key': 'app_unknown' })).status).toBe(401)
      expect((await create({ name: 'No' }, app.headers)).status).toBe(403)
    })

    test('a wallet makes nothing where the operator alone registers, as by default, and is told so before its request is judged', async () => {
      expect(service().config.registration).toBe('operator')
      const timestamp = Math.floor(service().world.now() / 1000)
      for (const body of ['{"name":"Signed","app_id":"signed"}', '{"nonsense":1}']) {
        const reply = await createSigned(service(), makeTestWallet(), { body, timestamp })
        expect(reply).toMatchObject({ status: 403, body: { code: 'FORBIDDEN' } })
        expect(reply.body.error).toContain('Only the operator of this service registers')
      }
      const nobody = await service().request('POST', '/api/apps', { body: { name: 'x' } })
      expect(nobody.status).toBe(401)
      expect((await service().request('GET', '/api/apps/signed')).status).toBe(404)
    })
  }))
