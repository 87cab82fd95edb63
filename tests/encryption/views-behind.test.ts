import { expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { change } from './change.ts'

withService(
  (service) => {
    test('a collection is not sealed while a view of its application reads it through a view of another one', async () => {
      const [app, other] = [await createData(service()), await createData(service())]
      await app.store('notes', [{ id: 'n1', text: 'planted' }])
      const granted = await grant(app, { grantee: other.appId, collection: 'notes' })
      await createView(other, { name: 'behind', of: `${app.appId}::notes`, refresh_mode: 'lazy' })
      await grant(other, { grantee: app.appId, view: 'behind' })
      const front = { name: 'front', of: `${other.appId}::behind`, refresh_mode: 'live' }
      await createView(app, front)
      const countRows = async () => (await app.list('front')).body.records?.length
      await expect.poll(countRows, { timeout: 30_000 }).toBe(1)
      // A grant of the collection forbids it, too; the view stays when that is gone.
      expect((await app.call('DELETE', `/grants/${granted}`)).status).toBe(200)
      for (const action of [{ action: 'add', collections: ['notes'] }, { private_app: true }])
        expect(await app.call('POST', '/encryption', action)).toMatchObject({
          status: 409,
          body: { code: 'NOT_ON_PRIVATE', error: expect.stringContaining('the view front') },
        })
      expect((await app.call('DELETE', '/views/front')).status).toBe(200)
      const set = await change(app, 'add', ['notes'])
      expect(set.body.encrypted_collections, set.text).toEqual(['notes'])
    })
  },
  { config: { encryptionUpdatePrice: 0n } },
)

async function grant(app: Data, body: object): Promise<string> {
  const made = await app.call('POST', '/grants', body)
  expect(made.status, made.text).toBe(201)
  return made.body.id
}

async function createView(
  app: Data,
  { name, of, refresh_mode }: Readonly<Record<'name' | 'of' | 'refresh_mode', string>>,
): Promise<void> {
  const query = { select: { id: true, text: true } }
  const view = { name, source_collections: [of], query, refresh_mode }
  const made = await app.call('POST', '/views', view)
  expect(made.status, made.text).toBe(201)
}
