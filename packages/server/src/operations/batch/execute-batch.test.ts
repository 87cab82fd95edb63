import { limits } from '@tollbase/contract/limits'
import { createData, type Data, listIds } from '@tollbase/testing/data'
import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import type { Json } from '@tollbase/testing/service'
import { describe, expect, test } from 'vitest'

const batch = (app: Data, operations: readonly unknown[], more: object = {}) =>
  app.call('POST', '/batch', { operations, ...more })

const record = async (app: Data, collection: string, key: string) =>
  (await app.record(collection, key)).body?.record

describe('executeBatch', () =>
  withService(
    (service) => {
      test('a batch creates, updates and deletes in several collections, in one block', async () => {
        const app = await createData(service())
        await app.store('stock', [
          { id: 'apple', left: 3, place: 'A1' },
          { id: 'pear', left: 9 },
        ])
        const { status, body } = await batch(app, [
          { operation: 'create', collection: 'orders', data: { id: 'o1', of: 'apple' } },
          { operation: 'update', collection: 'stock', data: { id: 'apple', left: 2 } },
          { operation: 'delete', collection: 'stock', data: { id: 'pear' } },
        ])
        expect(status).toBe(200)
        expect(body).toMatchObject([
          { success: true, operation: 'create', collection: 'orders' },
          { success: true, operation: 'update', collection: 'stock' },
          { success: true, operation: 'delete', collection: 'stock' },
        ])
        const stored = body.map(({ result }: Json) => result.results)
        expect(stored.map((one: Json) => one[0].id)).toEqual(['o1', 'apple', 'pear'])
        expect(new Set(stored.map((one: Json) => one[0].block_height)).size).toBe(1)
        const sequences = stored.map((one: Json) => one[0].sequence)
        expect(sequences.map((one: number) => one - sequences[0])).toEqual([0, 1, 2])
        expect(await record(app, 'stock', 'apple')).toEqual({ id: 'apple', left: 2, place: 'A1' })
        expect(listIds(await app.list('stock'))).toEqual(['apple'])
        expect(listIds(await app.list('orders'))).toEqual(['o1'])
        const { versions } = (await app.record('stock', 'pear', '/history')).body
        expect(versions.at(-1)).toMatchObject({ deleted: true, record: { left: 9, deleted: true } })
      })

      test('each operation sees what the ones before it did to its record', async () => {
        const app = await createData(service())
        await batch(app, [
          { operation: 'create', collection: 'c', data: { id: 'a', n: 1 } },
          { operation: 'update', collection: 'c', data: { id: 'a', m: 2 } },
          { operation: 'update', collection: 'c', data: { id: 'a', n: 3 } },
        ])
        expect(await record(app, 'c', 'a')).toEqual({ id: 'a', n: 3, m: 2 })
        const gone = await batch(app, [
          { operation: 'delete', collection: 'c', data: { id: 'a' } },
          { operation: 'update', collection: 'c', data: { id: 'a', n: 4 } },
        ])
        expect(gone).toMatchObject({ status: 404, body: { code: 'RECORD_NOT_FOUND' } })
        expect(await record(app, 'c', 'a'), 'nothing of it is done').toMatchObject({ n: 3 })
      })

      test('an update adds no member to a record that has as many as a stored one may have', async () => {
        const app = await createData(service())
        const most = Object.fromEntries(
          Array.from({ length: limits.objectMembersMax - 2 }, (_, at) => [`m${at}`, at]),
        )
        await app.store('c', [{ id: 'a', ...most }])
        const update = (data: object) =>
          batch(app, [{ operation: 'update', collection: 'c', data: { id: 'a', ...data } }])
        expect((await update({ last: 1 })).status).toBe(200)
        const { status, body } = await update({ more: 1 })
        expect([status, body.code]).toEqual([400, 'VALIDATION_FAILED'])
        expect(body.error).toContain(`an object of more than ${limits.objectMembersMax} members`)
        expect((await update({ last: 2, m0: 'new' })).status).toBe(200)
        expect(await record(app, 'c', 'a')).toEqual({ id: 'a', ...most, m0: 'new', last: 2 })
        const gone = { operation: 'delete', collection: 'c', data: { id: 'a' } }
        expect((await batch(app, [gone])).status).toBe(200)
      })

      test('digits, order and spelling of what is not updated stay', async () => {
        const app = await createData(service())
        await app.storeText('c', '{"id":"a", "big":12345678901234567890.10, "n":1e2}')
        await batch(app, [
          { operation: 'update', collection: 'c', data: { id: 'a', n: 7, x: null } },
        ])
        const { text } = await app.record('c', 'a')
        expect(text).toContain('{"id":"a","big":12345678901234567890.10,"n":7,"x":null}')
      })

      test('conditions update and delete all that match, or the record of the key if it matches', async () => {
        const app = await createData(service())
        const records = ['a', 'b', 'c', 'd'].map((id, n) => ({ id, n, open: n !== 3 }))
        await app.store('c', records)
        const { body } = await batch(app, [
          {
            operation: 'update',
            collection: 'c',
            data: { seen: true },
            conditions: { open: true },
          },
          { operation: 'delete', collection: 'c', conditions: { n: { greaterThan: 1 } } },
          { operation: 'update', collection: 'c', data: { id: 'a', n: 10 }, conditions: { n: 0 } },
          { operation: 'update', collection: 'c', data: { id: 'b', n: 10 }, conditions: { n: 0 } },
          { operation: 'update', collection: 'c', data: { seen: 2 }, conditions: { n: 2 } },
        ])
        const ids = body.map(({ result }: Json) => result.results.map(({ id }: Json) => id))
        expect(ids, 'what is deleted is not brought back').toEqual([
          ['a', 'b', 'c'],
          ['c', 'd'],
          ['a'],
          [],
          [],
        ])
        expect((await app.list('c')).body.records).toEqual([
          { id: 'b', n: 1, open: true, seen: true },
          { id: 'a', n: 10, open: true, seen: true },
        ])
        const none = await batch(app, [
          { operation: 'create', collection: 'new', data: {} },
          { operation: 'delete', collection: 'new', conditions: { n: 99 } },
        ])
        expect(none.body).toMatchObject([{}, { success: true, result: { results: [] } }])
      })

      test.each([
        ['no operations', [], '/operations'],
        [
          'an unknown operation',
          [{ operation: 'upsert', collection: 'c', data: {} }],
          '/operations/0',
        ],
        [
          'data that is no object',
          [{ operation: 'create', collection: 'c', data: [1] }],
          '/operations/0',
        ],
        [
          'a creation without data',
          [{ operation: 'create', collection: 'c' }],
          '/operations/0/data',
        ],
        [
          'conditions of a creation',
          [{ operation: 'create', collection: 'c', data: {}, conditions: {} }],
          '/operations/0/conditions',
        ],
        [
          'an update of nothing named',
          [{ operation: 'update', collection: 'c', data: { n: 1 } }],
          '/operations/0/data',
        ],
        [
          'conditions that are none',
          [{ operation: 'delete', collection: 'c', conditions: { n: { near: 1 } } }],
          '/operations/0/conditions',
        ],
        [
          'a key that is none',
          [{ operation: 'delete', collection: 'c', data: { id: true } }],
          '/operations/0/data/id',
        ],
        [
          'what cannot be kept',
          [{ operation: 'create', collection: 'c', data: { a: 'x\u0000' } }],
          '/operations/0',
        ],
      ])('a batch with %s is refused, and the place is named', async (_what, operations, field) => {
        const app = await createData(service())
        await app.store('c', [{ id: 'a' }])
        const good = { operation: 'create', collection: 'c', data: { id: 'x' } }
        const { status, body } = await batch(app, operations)
        expect(status).toBe(400)
        expect(body.details.field).toContain(field)
        if (operations.length > 0) {
          const second = await batch(app, [good, ...operations])
          expect(second.body.details.field).toContain(field.replace('/0', '/1'))
        }
        expect(listIds(await app.list('c'))).toEqual(['a'])
      })

      test('one operation that cannot be done refuses all, in every collection', async () => {
        const app = await createData(service())
        const schema_definition = { fields: { n: { type: 'number', required: true } } }
        await app.create({ name: 'strict', schema_definition })
        await app.create({ name: 'events', collection_type: 'event' })
        await app.create({ name: 'files', collection_type: 'blob' })
        await app.store('strict', [{ id: 'a', n: 1 }])
        await app.store('events', [{ id: 'e' }])
        const first = { operation: 'create', collection: 'free', data: { id: 'x' } }
        const bad = [
          [422, 'SCHEMA_VIOLATION', 'create', 'strict', { id: 'b' }],
          [422, 'SCHEMA_VIOLATION', 'update', 'strict', { id: 'a', n: 'one' }],
          [404, 'RECORD_NOT_FOUND', 'update', 'strict', { id: 'nobody', n: 1 }],
          [404, 'RECORD_NOT_FOUND', 'delete', 'strict', { id: 'nobody' }],
          [404, 'COLLECTION_NOT_FOUND', 'delete', 'not_there', { id: 'a' }],
          [409, 'RECORD_EXISTS', 'create', 'events', { id: 'e' }],
          [409, 'CONFLICT', 'update', 'events', { id: 'e' }],
          [409, 'CONFLICT', 'create', 'files', { id: 'e' }],
          [
            413,
            'PAYLOAD_TOO_LARGE',
            'create',
            'free',
            { id: 'y', a: 'x'.repeat(limits.recordBytesMax) },
          ],
        ] as const
        for (const [status, code, operation, collection, data] of bad) {
          const refused = await batch(app, [first, { operation, collection, data }])
          expect(refused, code).toMatchObject({ status, body: { code } })
          expect(refused.body.error + JSON.stringify(refused.body.details)).toMatch(
            /operations\/1|not_there/,
          )
        }
        // The collection of the first operation may be there by now, but nothing is in it.
        expect((await app.list('free')).body.records ?? []).toEqual([])
        expect(listIds(await app.list('strict'))).toEqual(['a'])
      })

      test('a strict batch refuses keys and values of unique fields that are there, or twice in the batch', async () => {
        const app = await createData(service())
        await app.create({ name: 'u', schema_definition: { fields: { mail: { unique: true } } } })
        await app.store('u', [{ id: 'a', mail: 'a@x' }])
        const create = (data: object) => ({ operation: 'create', collection: 'u', data })
        const strict = { strict: true }
        for (const twins of [
          [create({ id: 'a' })],
          [create({ id: 'b', mail: 'a@x' })],
          [create({ id: 'b' }), create({ id: 'b' })],
          [create({ id: 'b', mail: 'b@x' }), create({ id: 'c', mail: 'b@x' })],
        ]) {
          expect(await batch(app, twins, strict)).toMatchObject({
            status: 409,
            body: { code: 'RECORD_EXISTS' },
          })
        }
        expect((await batch(app, [create({ id: 'b', mail: 'b@x' })], strict)).status).toBe(200)
        await batch(app, [create({ id: 'c', mail: 'b@x' })])
        expect(listIds(await app.list('u')), 'else the latest wins').toEqual(['a', 'c'])
      })

      test('a batch adds the defaults of a collection, and makes missing ids', async () => {
        const app = await createData(service())
        await app.create({ name: 'd', schema_definition: { fields: { n: { default: 5 } } } })
        const { body } = await batch(app, [{ operation: 'create', collection: 'd', data: {} }])
        const [{ id }] = body[0].result.results
        expect(await record(app, 'd', id)).toEqual({ id, n: 5 })
      })

      test('no write is lost between what a batch reads and what it writes', async () => {
        const app = await createData(service())
        await app.store('c', [{ id: 'sum', n: 0, others: 0 }])
        const add = async (): Promise<void> => {
          for (;;) {
            const { n } = await record(app, 'c', 'sum')
            const { body } = await batch(app, [
              {
                operation: 'update',
                collection: 'c',
                data: { id: 'sum', n: n + 1 },
                conditions: { n },
              },
              { operation: 'create', collection: 'log', data: {} },
            ])
            if (body[0].result.results.length === 1) return
          }
        }
        const noise = Array.from({ length: 30 }, (_, at) => app.store('c', [{ id: `x${at}` }]))
        await Promise.all([...Array.from({ length: 6 }, add), ...noise])
        expect(await record(app, 'c', 'sum')).toMatchObject({ n: 6, others: 0 })
        expect((await app.list('c')).body.total).toBe(31)
      })

      test('exactly one of the strict stores and batches that make one record wins', async () => {
        const app = await createData(service())
        await app.store('c', [{ id: 'first' }])
        const create = [{ operation: 'create', collection: 'c', data: { id: 'one' } }]
        const tries = Array.from({ length: 10 }, (_, at) =>
          at % 2 === 0
            ? batch(app, create, { strict: true })
            : app.store('c', [{ id: 'one' }], { strict: true }),
        )
        const statuses = (await Promise.all(tries)).map(({ status }) => status)
        expect(statuses.toSorted()).toEqual([200, ...Array.from({ length: 9 }, () => 409)])
        const { versions } = (await app.record('c', 'one', '/history')).body
        expect(versions).toHaveLength(1)
      })

      test('a batch does the most operations that the limit allows, and one more is refused', async () => {
        const app = await createData(service())
        const one = { operation: 'create', collection: 'c', data: {} }
        const most = Array.from({ length: limits.batchOperationsMax }, () => one)
        const { status, body } = await batch(app, most)
        expect(status).toBe(200)
        expect(new Set(body.map(({ result }: Json) => result.celestia_height)).size).toBe(1)
        expect((await batch(app, [...most, one])).status).toBe(400)
      })

      test('conditions that match more records than one operation may change refuse the batch', async () => {
        const app = await createData(service())
        const records = Array.from({ length: limits.batchMatchesMax + 1 }, (_, n) => ({
          id: `${n}`,
          n,
        }))
        await app.store('c', records)
        const drop = (conditions: unknown) =>
          batch(app, [{ operation: 'delete', collection: 'c', conditions }])
        expect(await drop({ n: { exists: true } })).toMatchObject({
          status: 413,
          body: { code: 'RESULT_TOO_LARGE', details: { field: '/operations/0/conditions' } },
        })
        const { body } = await drop({ n: { greaterThan: 0 } })
        expect(body[0].result.results).toHaveLength(limits.batchMatchesMax)
        expect(listIds(await app.list('c'))).toEqual(['0'])
      })

      test('a batch that no block can hold is refused at the operation that makes it so, with nothing more read', async () => {
        const app = await createData(service())
        const records = Array.from({ length: limits.batchMatchesMax }, (_, n) => ({ id: `${n}` }))
        await app.store('many', records)
        const update = (data: object) => ({
          operation: 'update',
          collection: 'many',
          data,
          conditions: {},
        })
        // Each of these matches all records, so that eleven make more entries than a block has.
        const often = await batch(
          app,
          Array.from({ length: 20 }, (_, n) => update({ n })),
        )
        expect(often).toMatchObject({
          status: 413,
          body: { code: 'PAYLOAD_TOO_LARGE', details: { operation: 10 } },
        })
        const long = await batch(app, [update({ n: 1 }), update({ text: 'x'.repeat(500_000) })])
        expect(long).toMatchObject({
          status: 413,
          body: { code: 'PAYLOAD_TOO_LARGE', details: { operation: 1 } },
        })
        expect(await record(app, 'many', '0'), 'nothing of it is done').toEqual({ id: '0' })
      })

      test('a batch reads no more of the records that it names than fits', async () => {
        const app = await createData(service())
        const pad = 'x'.repeat(1_040_000)
        const most = Math.floor(limits.batchReadBytesMax / (pad.length + 20))
        const ids = Array.from({ length: most + 1 }, (_, n) => `${n}`)
        for (let at = 0; at < ids.length; at += 4) {
          const data = ids.slice(at, at + 4).map((id) => ({ id, pad }))
          expect((await app.store('long', data)).status).toBe(200)
        }
        const shorten = (named: readonly string[]) =>
          batch(
            app,
            named.map((id) => ({ operation: 'update', collection: 'long', data: { id, pad: '' } })),
          )
        expect(await shorten(ids)).toMatchObject({
          status: 413,
          body: { code: 'RESULT_TOO_LARGE' },
        })
        expect((await shorten(ids.slice(1))).status).toBe(200)
        expect(await record(app, 'long', '1')).toEqual({ id: '1', pad: '' })
      })

      test('conditions tell what is in records, so they are for those who may read', async () => {
        const app = await createData(service())
        await app.create({ name: 'mine', access_policy: 'private' })
        await app.store('mine', [{ id: 'a', n: 1 }])
        const { body: made } = await app.call('POST', '/keys', { permissions: ['Write'] })
        const operations = [
          { operation: 'update', collection: 'mine', data: { m: 1 }, conditions: { n: 1 } },
        ]
        const by = async (headers: Readonly<Record<string, string>>, sent: readonly unknown[]) =>
          (
            await service().request('POST', `/api/apps/${app.appId}/batch`, {
              body: { operations: sent },
              headers,
            })
          ).status
        expect(await by({ 'x-app-key': made.key }, operations)).toBe(403)
        expect(await by(service().operator, operations)).toBe(403)
        const plain = [{ operation: 'update', collection: 'mine', data: { id: 'a', m: 1 } }]
        expect(await by({ 'x-app-key': made.key }, plain)).toBe(200)
      })

      test('a batch owes the write prices of each collection, and records that match conditions cost nothing', async () => {
        const app = await createData(service())
        await app.create({ name: 'dear' })
        const rule = (model: string, amount: string) => ({
          target: { collection: 'dear' },
          operation: 'write',
          model,
          amount,
        })
        await app.call('PUT', '/pricing', {
          rules: [rule('per_access', '100'), rule('per_record', '7')],
        })
        const create = (collection: string) => ({ operation: 'create', collection, data: {} })
        const asked = await batch(app, [create('dear'), create('free'), create('dear')])
        expect(asked.status).toBe(402)
        expect(asked.body.accepts[0].maxAmountRequired).toBe('114')
        const priced = [
          { operation: 'update', collection: 'dear', data: { m: 1 }, conditions: { n: 1 } },
        ]
        expect(await batch(app, priced)).toMatchObject({ status: 400 })
        expect((await batch(app, [create('free')])).status).toBe(200)
      })

      test('a batch knows collections by their names alone: an id is no way around a price, a type or a right', async () => {
        const app = await createData(service())
        const make = async (more: object) => (await app.create(more)).body.collection_id
        const dear = await make({ name: 'dear' })
        const log = await make({ name: 'log', collection_type: 'event' })
        const mine = await make({ name: 'mine', access_policy: 'private' })
        for (const name of ['dear', 'log', 'mine']) await app.store(name, [{ id: 'a', n: 1 }])
        const target = { collection: 'dear' }
        const rule = { target, operation: 'write', model: 'per_access', amount: '100' }
        const rules = await app.call('PUT', '/pricing', { rules: [rule] })
        expect(rules.status, rules.text).toBe(200)
        const data = { id: 'a', n: 2 }
        for (const collection of [dear, log, mine])
          for (const operation of ['update', 'delete']) {
            const tried = await batch(app, [{ operation, collection, data }])
            expect([tried.status, tried.body.code]).toEqual([404, 'COLLECTION_NOT_FOUND'])
          }
        const asked = { operation: 'delete', collection: mine, data: {}, conditions: { n: 1 } }
        const path = `/api/apps/${app.appId}/batch`
        const body = { operations: [asked] }
        const probed = await service().request('POST', path, { body, headers: service().operator })
        expect(probed.status, probed.text).toBe(404)
        for (const name of ['dear', 'log', 'mine'])
          expect(await record(app, name, 'a')).toEqual({ id: 'a', n: 1 })
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
