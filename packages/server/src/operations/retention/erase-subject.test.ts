import { createData, type Data, listIds } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import type { TestService } from '@tollbase/testing/service'
import { verifyDocument } from '@tollbase/verify/verify'
import { describe, expect, test } from 'vitest'
import { sql } from '../../database/sql.ts'
import { audit } from '../../operator/audit/audit.ts'
import { rebuild } from '../../operator/rebuild.ts'

const erase = (app: Data, value: string | number, field = 'person') =>
  app.call('POST', '/collections/visits/erase', { field, value })

async function holds({ running, database }: TestService, app: Data, text: string) {
  const { chain, data, schema } = await running.service.tenants.load(app.appId)
  for await (const block of chain.blocksFrom(1))
    if (block.entries.some((entry) => entry?.body.includes(text))) return true
  const found = await Promise.all(
    [...data.catalog.byId.values()].map(({ table }) =>
      database.query(
        sql`SELECT leaf FROM ${sql.id(schema, table)} WHERE body LIKE ${`%${text}%`} LIMIT 1`,
      ),
    ),
  )
  return found.some((rows) => rows.length > 0)
}

async function expectSound(service: TestService): Promise<void> {
  expect(await service.whileStopped((config) => audit(config, () => undefined))).toMatchObject({
    equal: true,
  })
  const made = await service.whileStopped((config) => rebuild(config, () => undefined))
  expect(made.equal).toBe(true)
}

describe('eraseSubject', () => {
  withService(
    (service) => {
      test.each([false, true])(
        'all records of a person are gone for good, and those of others stay (encrypted: %s)',
        async (isEncrypted) => {
          const app = await createData(service())
          await app.create({ name: 'visits' })
          if (isEncrypted)
            await app.call('POST', '/encryption', { action: 'add', collections: ['visits'] })
          await app.store('visits', [
            { id: 'v1', person: 'p-17', text: 'planted-first' },
            { id: 'v2', person: 'p-18', text: 'theirs' },
            { id: 'v3', person: 17, text: 'planted-number' },
            { id: 'v4', person: ['p-17'], text: 'no name' },
            { id: 'v5', person: 'p-17', text: 'planted-deleted' },
          ])
          const proof = (await app.record('visits', 'v1', '/proof')).body
          await app.store('visits', [{ id: 'v1', person: 'p-17', text: 'planted-second' }])
          await app.store('visits', [{ id: 'v5', deleted: true }])
          await app.store('visits', [{ id: 'v2', person: 'p-18', text: 'theirs again' }])
          if (!isEncrypted)
            await app.call('POST', '/views', {
              name: 'count',
              source_collections: ['visits'],
              query: { aggregate: { n: { $count: '*' } } },
              refresh_mode: 'live',
            })
          const done = await erase(app, 'p-17')
          expect(done.status, done.text).toBe(200)
          expect(done.body).toMatchObject({ success: true, versions: 4 })
          expect((await erase(app, 17)).body).toMatchObject({
            versions: 1,
            message: expect.stringMatching(/^1 version of a record of .* is erased/),
          })
          expect((await erase(app, 'p-17')).body).toMatchObject({ versions: 0, entries: [] })
          expect((await app.record('visits', 'v1')).status).toBe(410)
          const { versions } = (await app.record('visits', 'v1', '/history')).body
          expect(versions).toMatchObject([{ expired: true }, { expired: true }])
          expect(listIds(await app.list('visits', { sortBy: 'id' }))).toEqual(['v2', 'v4'])
          expect((await app.list('visits', { include_history: true })).body.total).toBe(3)
          if (!isEncrypted) expect((await app.list('count')).body.records).toEqual([{ n: 2 }])
          expect(await holds(service(), app, 'planted')).toBe(false)
          expect((await app.record('visits', 'v2', '/history')).body.versions).toHaveLength(2)

          // The proof from before holds, and the entry that says what was erased has its own.
          const { key } = (await app.call('GET', '/chain/checkpoint')).body
          expect(verifyDocument(JSON.stringify(proof), { trustedKey: key }).ok).toBe(true)
          const [{ block_height, sequence }] = done.body.entries
          const at = `height=${block_height}&sequence=${sequence}`
          const said = (await app.call('GET', `/chain/proof?${at}`)).body
          expect(verifyDocument(JSON.stringify(said), { trustedKey: key }).ok).toBe(true)
          expect(Buffer.from(said.entry, 'base64').toString()).toContain(`[${proof.leaf_index},`)
          await app.store('visits', [{ id: 'v1', person: 'p-17', text: 'came back' }])
          expect((await app.record('visits', 'v1')).body.record.text).toBe('came back')
          await expectSound(service())
          expect(listIds(await app.list('visits', { sortBy: 'id' }))).toEqual(['v1', 'v2', 'v4'])
        },
      )

      test('a record that once was another person’s leaves its older versions, and a record that a unique field replaced leaves too', async () => {
        const app = await createData(service())
        const fields = { mail: { type: 'string', unique: true } }
        await app.create({ name: 'visits', schema_definition: { fields } })
        await app.store('visits', [{ id: 'a', person: 'x', mail: 'm1', text: 'planted' }])
        await app.store('visits', [{ id: 'b', person: 'y', mail: 'm1', text: 'planted' }])
        await app.store('visits', [{ id: 'c', person: 'x', mail: 'm2', text: 'kept' }])
        await app.store('visits', [{ id: 'd', person: 'y', mail: 'm3', text: 'planted' }])
        await app.store('visits', [{ id: 'd', person: 'z', mail: 'm3', text: 'kept too' }])
        expect((await erase(app, 'y')).body.versions).toBe(3)
        expect(await holds(service(), app, 'planted')).toBe(false)
        expect(listIds(await app.list('visits', { sortBy: 'id' }))).toEqual(['c', 'd'])
        await expectSound(service())
        expect(listIds(await app.list('visits', { sortBy: 'id' }))).toEqual(['c', 'd'])
      })

      test('a batch that has read a record before it is erased does not bring it back', async () => {
        const app = await createData(service())
        await app.create({ name: 'visits' })
        await app.store('visits', [{ id: 'v1', person: 'p', text: 'planted' }])
        const tenant = await service().running.service.tenants.load(app.appId)
        const id = tenant.data.catalog.byName.get('visits')?.id ?? ''
        // A batch that is slow between its reads and its write.
        const batch = tenant.collectionLock.run([id], async () => {
          const { record } = (await app.record('visits', 'v1')).body
          const erasing = erase(app, 'p')
          await expect.poll(async () => (await app.record('visits', 'v1')).status).not.toBe(200)
          const body = JSON.stringify({ ...record, visits: 2 })
          await tenant.chain.append([
            { header: { type: 'record', collection: id, key: 'v1' }, body },
          ])
          return { erasing }
        })
        const done = await (await batch).erasing
        expect(done.body).toMatchObject({ success: true, versions: 2 })
        expect(await holds(service(), app, 'planted')).toBe(false)
        expect((await app.record('visits', 'v1')).status).not.toBe(200)
        await expectSound(service())
      })

      test('while a collection is searched for a person, definitions and writes go on, and what is stored meanwhile goes too', async () => {
        const app = await createData(service())
        await app.create({ name: 'visits' })
        await app.call('POST', '/encryption', { action: 'add', collections: ['visits'] })
        const persons = Array.from({ length: 1_200 }, (_, n) => ({ id: `r${n}`, person: 'p' }))
        await app.store('visits', persons)
        await app.store('visits', [{ id: 'other', person: 'q' }])
        const { schema, data } = await service().running.service.tenants.load(app.appId)
        const table = sql.id(schema, data.catalog.byName.get('visits')?.table ?? '')
        const erasing = await service().database.transaction(async (tx) => {
          await tx.execute(sql`LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`)
          const begun = erase(app, 'p')
          // The search waits for the table, and nobody waits for the search.
          expect((await app.create({ name: 'meanwhile' })).status).toBe(201)
          expect((await app.queue('visits', [{ id: 'late', person: 'p' }])).status).toBe(202)
          return { begun }
        })
        const done = await erasing.begun
        expect(done.body, done.text).toMatchObject({ success: true, versions: 1_201 })
        expect(done.body.entries.length).toBeGreaterThan(1)
        expect(listIds(await app.list('visits'))).toEqual(['other'])
        expect((await erase(app, 'p')).body.versions).toBe(0)
      })

      test('once a call has answered, nobody reads what was erased, though the call before it was broken off', async () => {
        const app = await createData(service())
        await app.create({ name: 'visits' })
        for (const text of ['planted', 'second'])
          await app.store('visits', [{ id: 'v1', person: 'p', text }])
        service().world.atFailpoints((point) => {
          if (point === 'expiry.listed') throw new Error('broken off')
        })
        expect((await erase(app, 'p')).status).toBe(500)
        service().world.atFailpoints(undefined)
        const { schema, data } = await service().running.service.tenants.load(app.appId)
        const table = sql.id(schema, data.catalog.byName.get('visits')?.table ?? '')
        const { again } = await service().database.transaction(async (tx) => {
          // The row of the older version cannot be deleted yet.
          await tx.execute(sql`
            SELECT leaf FROM ${table} WHERE leaf = (SELECT min(leaf) FROM ${table}) FOR UPDATE`)
          const again = erase(app, 'p').then(async (done) => {
            const { versions } = (await app.record('visits', 'v1', '/history')).body
            return { done, versions }
          })
          await Promise.race([again, new Promise((resolve) => setTimeout(resolve, 1_000))])
          return { again }
        })
        const { done, versions } = await again
        expect(done.body, done.text).toMatchObject({ success: true, versions: 0 })
        expect(versions).toMatchObject([{ expired: true }, { expired: true }])
        expect(await holds(service(), app, 'planted')).toBe(false)
      })

      test('versions that do not open are counted, and the others of the person are erased', async () => {
        const app = await createData(service())
        await app.create({ name: 'visits' })
        await app.call('POST', '/encryption', { action: 'add', collections: ['visits'] })
        for (const id of ['v1', 'v2', 'v3']) await app.store('visits', [{ id, person: 'p' }])
        const { schema, data } = await service().running.service.tenants.load(app.appId)
        const table = sql.id(schema, data.catalog.byName.get('visits')?.table ?? '')
        await service().database.execute(sql`
          UPDATE ${table} SET body = overlay(body placing 'AAAA' from position('"ciphertext":"' in body) + 14)
          WHERE leaf = (SELECT min(leaf) FROM ${table})`)
        const erased = await erase(app, 'p')
        expect(erased.body, erased.text).toMatchObject({ versions: 2, unopened_versions: 1 })
        expect(erased.body.message).toContain('do not open')
        const made = await service().whileStopped((config) => rebuild(config, () => undefined))
        expect(made.equal).toBe(true)
        const again = (await erase(app, 'p')).body
        expect(again.versions).toBe(1)
        expect(again.unopened_versions).toBeUndefined()
      })

      test.each([false, true])(
        'a subject is found by a number of any length, and no other number is taken for it (encrypted: %s)',
        async (isEncrypted) => {
          const app = await createData(service())
          await app.create({ name: 'visits' })
          if (isEncrypted)
            await app.call('POST', '/encryption', { action: 'add', collections: ['visits'] })
          // The last three are one double.
          const numbers = [
            '4000000000000002',
            '18014398509481985',
            '18014398509481986',
            '18014398509481984.0',
          ]
          const records = numbers.map((number, n) => `{"id":"n${n}","person":${number}}`)
          await app.storeText('visits', [...records, `{"id":"t","person":"${numbers[1]}"}`].join())
          expect((await erase(app, 4_000_000_000_000_002)).body).toMatchObject({ versions: 1 })
          expect((await erase(app, '18014398509481985')).body).toMatchObject({ versions: 2 })
          expect(listIds(await app.list('visits', { sortBy: 'id' }))).toEqual(['n2', 'n3'])
        },
      )

      test('only an Admin key of the application erases, and a request that names no subject is refused', async () => {
        const app = await createData(service())
        await app.store('visits', [{ id: 'v1', person: 'p' }])
        const path = `/api/apps/${app.appId}/collections/visits/erase`
        const body = { field: 'person', value: 'p' }
        const made = await app.call('POST', '/keys', { permissions: ['Read', 'Write'] })
        for (const [headers, status] of [
          [{}, 401],
          [{ 'x-app-key': made.body.key }, 403],
          [service().operator, 403],
        ] as const)
          expect((await service().request('POST', path, { body, headers })).status).toBe(status)
        for (const wrong of [
          {},
          { field: 'person' },
          { field: '', value: 'p' },
          { field: 'person', value: null },
          { field: 'person', value: 1.5 },
        ])
          expect((await app.call('POST', '/collections/visits/erase', wrong)).status).toBe(400)
        expect((await app.record('visits', 'v1')).status).toBe(200)
      })
    },
    { config: { encryptionUpdatePrice: 0n } },
  )
})
