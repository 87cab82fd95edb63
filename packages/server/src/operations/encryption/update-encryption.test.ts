import { createData, type Data, listIds } from '@tollbase/testing/data'
import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import type { TestService } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'
import { sql } from '../../database/sql.ts'

const free = { config: { encryptionUpdatePrice: 0n } }

async function createEncrypted(service: TestService, name = 'notes'): Promise<Data> {
  const app = await createData(service)
  await app.create({ name })
  const set = await app.call('POST', '/encryption', { action: 'add', collections: [name] })
  expect(set.status, set.text).toBe(200)
  return app
}

describe('updateEncryption', () => {
  withService((service) => {
    test('a collection without records becomes encrypted, and its own keys read it as before', async () => {
      const app = await createEncrypted(service())
      const data = [
        { id: 'a', n: 2, city: 'Wien' },
        { id: 'b', n: 1.5e3, city: 'Graz' },
        { id: 7, n: 3, city: 'Wien' },
      ]
      const stored = await app.store('notes', data)
      expect(stored.body.results.map((one: { id: string }) => one.id)).toEqual(['a', 'b', '7'])
      expect((await app.record('notes', 'a')).body.record).toEqual(data[0])
      expect((await app.record('notes', 'none')).status).toBe(404)
      const found = await app.list('notes', { find: { city: { is: 'Wien' } }, sortBy: 'n' })
      expect(found.body).toMatchObject({ records: [data[0], data[2]], total: 2 })
      expect(found.body.as_of).toEqual((await app.record('notes', 'a')).body.as_of)
      expect(listIds(await app.list('notes', { find: { id: { in: ['b', 7] } } }))).toEqual(['b', 7])
      expect(listIds(await app.list('notes', { find: { id: '7' } }))).toEqual([])
      const page = await app.list('notes', {
        sortBy: 'n',
        limit: 1,
        offset: 1,
        select: { n: true },
      })
      expect(page.body).toMatchObject({ records: [{ n: 3 }], total: 3 })
      expect(page.body.next_cursor).toBeUndefined()
      expect((await app.list('notes', { cursor: 'x', limit: 1 })).status).toBe(400)
    })

    test('newer versions, deletions, history and changes of sealed records are as those of others', async () => {
      const app = await createEncrypted(service())
      await app.store('notes', [{ id: 'a', v: 1 }])
      await app.store('notes', [
        { id: 'a', v: 2 },
        { id: 'b', v: 1 },
      ])
      await app.store('notes', [{ id: 'b', deleted: true }])
      expect((await app.list('notes')).body.records).toEqual([{ id: 'a', v: 2 }])
      expect((await app.list('notes', { include_history: true })).body.total).toBe(4)
      expect((await app.record('notes', 'b')).status).toBe(404)
      const history = (await app.record('notes', 'a', '/history')).body.versions
      expect(history.map((one: { record: object }) => one.record)).toEqual([
        { id: 'a', v: 1 },
        { id: 'a', v: 2 },
      ])
      const { changes } = (await app.call('GET', '/collections/notes/changes')).body
      expect(changes.map((one: { key: string }) => one.key)).toEqual(['a', 'a', 'b', 'b'])
      expect(changes[1].record).toEqual({ id: 'a', v: 2 })
      const again = await app.store('notes', [{ id: 'a' }], { strict: true })
      expect(again).toMatchObject({ status: 409, body: { details: { key: 'a' } } })
    })

    test('a private application encrypts what is there and empty, and all that is made later', async () => {
      const app = await createData(service())
      await app.create({ name: 'one' })
      const set = await app.call('POST', '/encryption', { private_app: true })
      expect(set.body).toMatchObject({
        success: true,
        private_app: true,
        encrypted_collections: ['one'],
      })
      await app.store('two', [{ id: 'a' }])
      const seen = await app.call('GET', '/encryption')
      expect(seen.body).toMatchObject({
        private_app: true,
        encrypted_collections: ['one', 'two'],
        algorithm: 'AES-256-GCM',
        key_epoch: 1,
      })
      expect((await app.call('GET', '')).body.encryption.private_app).toBe(true)
      const opened = await app.create({ name: 'shown', access_policy: 'public' })
      expect(opened).toMatchObject({ status: 409, body: { code: 'NOT_ON_PRIVATE' } })
      const indexed = await app.create({
        name: 'found',
        schema_definition: { fields: { city: { type: 'string', unique: true } } },
      })
      expect(indexed.body).toMatchObject({ code: 'NOT_ON_PRIVATE', details: { fields: ['city'] } })
      const remove = { action: 'remove', collections: ['one'] }
      expect((await app.call('POST', '/encryption', remove)).status).toBe(409)
      const ended = await app.call('POST', '/encryption', { private_app: false, ...remove })
      expect(ended.body).toMatchObject({ private_app: false, encrypted_collections: ['two'] })
      await app.store('three', [{ id: 'a' }])
      const after = (await app.call('GET', '/encryption')).body.encrypted_collections
      expect(after).toEqual(['two'])
    })

    test('what has records is encrypted and opened with them, and the answer says what that cannot take back', async () => {
      const app = await createEncrypted(service())
      await app.store('notes', [{ id: 'a' }])
      await app.store('plain', [{ id: 'a' }])
      for (const [body, encrypted] of [
        [{ action: 'add', collections: ['plain'] }, ['notes', 'plain']],
        [{ action: 'remove', collections: ['notes'] }, ['plain']],
        [{ private_app: true }, ['notes', 'plain']],
      ] as const) {
        const set = await app.call('POST', '/encryption', body)
        expect(set.status, set.text).toBe(200)
        expect(set.body.message).toContain('cannot be taken back')
        expect(set.body.tasks).toBeUndefined()
        expect([...set.body.encrypted_collections].sort()).toEqual(encrypted)
        for (const name of ['notes', 'plain'])
          expect((await app.record(name, 'a')).body.record).toEqual({ id: 'a' })
      }
    })

    test('a collection has the same keys when its encryption ended and began again, as a store under way may use them', async () => {
      const app = await createEncrypted(service())
      const readKeys = () =>
        service().database.query(sql`
          SELECT epoch, wrapped FROM operations.data_key WHERE app = ${app.appId} ORDER BY epoch`)
      const keys = await readKeys()
      expect(keys).toHaveLength(2)
      for (const action of ['remove', 'add']) {
        const set = await app.call('POST', '/encryption', { action, collections: ['notes'] })
        expect(set.status, set.text).toBe(200)
      }
      expect(await readKeys()).toEqual(keys)
      await app.call('POST', '/encryption', { action: 'remove', collections: ['notes'] })
      expect((await app.call('DELETE', '/collections/notes')).status).toBe(200)
      expect(await readKeys()).toEqual([])
    })

    test('what is queried, sold or indexed is not encrypted before that is gone', async () => {
      const app = await createData(service())
      await app.create({ name: 'priced', access_policy: { price: { per_row: '1' } } })
      await app.create({ name: 'shown', access_policy: 'public' })
      await app.create({ name: 'viewed' })
      await app.call('POST', '/views', {
        name: 'v',
        source_collections: ['viewed'],
        query: { find: {} },
      })
      await app.create({ name: 'asked' })
      const sql = `SELECT id FROM "${app.appId}"::asked`
      await app.call('POST', '/queries', { name: 'q', sql, parameters: [] })
      await app.create({
        name: 'indexed',
        schema_definition: { fields: { n: { type: 'number', index: true } } },
      })
      for (const name of ['priced', 'shown', 'viewed', 'asked', 'indexed']) {
        const set = await app.call('POST', '/encryption', { action: 'add', collections: [name] })
        expect(set, set.text).toMatchObject({ status: 409, body: { code: 'NOT_ON_PRIVATE' } })
      }
    })

    test('a request that says nothing, or half, or names no collection, is refused by its place', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      for (const [body, field] of [
        [{}, ''],
        [{ private_app: null }, ''],
        [{ action: 'add' }, '/collections'],
        [{ action: 'add', collections: [] }, '/collections'],
        [{ collections: ['c'] }, '/action'],
        [{ private_app: true, collections: ['c'] }, '/action'],
        [{ action: 'seal', collections: ['c'] }, '/action'],
        [{ action: 'add', collections: ['c', 'none'] }, '/collections/1'],
      ] as const) {
        const refused = await app.call('POST', '/encryption', body)
        expect(refused, refused.text).toMatchObject({ status: 400, body: { details: { field } } })
      }
    })

    test('without an Admin key nothing is changed', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      const path = `/api/apps/${app.appId}/encryption`
      const body = { action: 'add', collections: ['c'] }
      expect((await service().request('POST', path, { body })).status).toBe(401)
      const made = await app.call('POST', '/keys', { permissions: ['Read', 'Write'] })
      const headers = { 'x-app-key': made.body.key }
      expect((await service().request('POST', path, { body, headers })).status).toBe(403)
      expect(
        (await service().request('GET', path, { headers })).body.encrypted_collections,
      ).toEqual([])
      expect((await service().request('GET', path)).status).toBe(401)
    })
  }, free)
})

describe('the price of updateEncryption', () => {
  withService(
    (service) => {
      test('anyone is told the price, also with an Admin key, and a wish without shape is refused first', async () => {
        const app = await createData(service())
        await app.create({ name: 'c' })
        const path = `/apps/${app.appId}/encryption`
        const asked = await service().request('POST', path, {
          body: { action: 'add', collections: ['none'] },
        })
        expect(asked).toMatchObject({ status: 402 })
        expect(asked.body.accepts[0].maxAmountRequired).toBe('1000')
        expect((await service().request('POST', path, { body: {} })).status).toBe(400)
        const own = await app.call('POST', '/encryption', { action: 'add', collections: ['c'] })
        expect(own.status).toBe(402)
        const unknown = await app.call('POST', '/encryption', { action: 'add', collections: ['x'] })
        expect(unknown.status).toBe(400)
        expect((await app.call('GET', '/encryption')).body.encrypted_collections).toEqual([])
      })
    },
    { config: { networks: [idleNetwork] } },
  )
})
