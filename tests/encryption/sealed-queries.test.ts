import { createHash, createHmac } from 'node:crypto'
import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { dataKeyDaysMax } from '../../packages/server/src/services/encryption/data-keys.ts'
import { createData, type Data, listIds } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { change, check, settle } from './change.ts'

const schema_definition = {
  fields: { city: { index: true }, n: { type: 'any', index: true }, 'at.zip': { index: true } },
}
/** Values of every kind that a condition could mistake for each other. */
const values = ['Wien', 'wien', '', '1', 1, 1.5, -1, 0, true, false, 'true', 'é', 'e\u0301']
const odd = [null, undefined, ['Wien'], { city: 'Wien' }]

withService(
  (service) => {
    test('equality on declared fields finds the same records as on a collection that is not encrypted', async () => {
      const app = await createData(service())
      for (const name of ['open', 'sealed']) await app.create({ name, schema_definition })
      await deleteIndexes(app, 'sealed')
      expect((await change(app, 'add', ['sealed'])).status).toBe(200)
      const data = [...values, ...odd].map((value, at) => ({
        id: `r${at}`,
        city: value,
        n: [...values, ...odd].at(-1 - at),
        at: { zip: at % 3 },
        ...(at % 2 === 0 && { v: [at, 1] }),
      }))
      const exact =
        '{"id":"x1","n":1.0},{"id":"x2","n":10e-1},{"id":"x3","n":-0},{"id":"x4","n":1e400}'
      for (const name of ['open', 'sealed']) {
        await app.store(name, data)
        await app.storeText(name, exact)
        await app.store(name, [
          { id: 'r0', city: 'moved' },
          { id: 'r1', deleted: true },
        ])
      }
      const finds = [
        ...values.map((value) => ({ city: value })),
        { city: { in: values } },
        { n: { in: [1, 'true', 7] } },
        { 'at.zip': 1 },
        { city: 'Wien', n: 1 },
        { city: null },
        { city: { is: 'Wien' } },
        { or: [{ city: 'wien' }, { n: 1 }] },
      ]
      const asked = [
        ...finds.map((find) => ({ find })),
        { find: { n: 1 }, include_history: true },
        { nearest: { field: 'v', to: [1, 1], as: 'far' }, limit: 2 },
        { find: { 'at.zip': 2 }, nearest: { field: 'v', to: [1, 1] }, limit: 50 },
        { find: { 'at.zip': 2 }, sortBy: 'city', limit: 2, offset: 1 },
      ]
      await Promise.all(
        asked.map(async (query) => {
          const [open, sealed] = await Promise.all(
            ['open', 'sealed'].map((name) => app.list(name, query)),
          )
          const title = JSON.stringify(query)
          expect(open?.status, title).toBe(200)
          expect(sealed?.body.records, `${title} ${sealed?.text}`).toEqual(open?.body.records)
          expect(sealed?.body.total, title).toBe(open?.body.total)
        }),
      )
    })

    test('records stay findable when the data key, the form, the schema or the tables change, and not when they are erased', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      await change(app, 'add', ['c'])
      const find = async (city: string) => listIds(await app.list('c', { find: { city } }))
      await app.store('c', [{ id: 'undeclared', city: 'Wien' }])
      const declare = (field: object) =>
        app.call('PUT', '/collections/c', { schema_definition: { fields: { city: field } } })
      expect((await declare({ index: true })).status).toBe(200)
      await app.store('c', [{ id: 'first', city: 'Wien' }])
      service().world.advance((dataKeyDaysMax + 1) * 24 * 3_600_000)
      await app.store('c', [{ id: 'second', city: 'Wien' }])
      expect((await app.call('GET', '/encryption')).body.key_epoch).toBe(2)
      const all = ['undeclared', 'first', 'second']
      expect(await find('Wien')).toEqual(all)
      // As many tokens as one list looks for, and more: then all are opened.
      const cities = ['Wien', ...Array.from({ length: limits.inListMax - 1 }, (_, n) => `c${n}`)]
      expect(limits.fieldTokensMax).toBe(2 * limits.inListMax)
      const findAny = async () => listIds(await app.list('c', { find: { city: { in: cities } } }))
      expect(await findAny()).toEqual(all)
      service().world.advance((dataKeyDaysMax + 1) * 24 * 3_600_000)
      await app.store('c', [{ id: 'third', city: 'Wien' }])
      all.push('third')
      expect(await findAny()).toEqual(all)

      await declare({})
      await app.store('c', [{ id: 'between', city: 'Wien' }])
      expect(await find('Wien')).toEqual([...all, 'between'])
      await declare({ index: true })
      await app.store('c', [{ id: 'after', city: 'Wien' }])
      const more = [...all, 'between', 'after']
      expect(await find('Wien')).toEqual(more)
      expect(await check(service())).toEqual([undefined, true])
      expect(await find('Wien')).toEqual(more)

      await settle(app, await change(app, 'remove', ['c']))
      expect(await find('Wien')).toEqual(more)
      expect((await app.call('GET', '/collections/c')).body.indexes).toHaveLength(1)
      const refused = await change(app, 'add', ['c'])
      expect(refused.body.code, refused.text).toBe('NOT_ON_PRIVATE')
      await deleteIndexes(app, 'c')
      await settle(app, await change(app, 'add', ['c']))
      expect(await find('Wien')).toEqual(more)
      expect(await listTokens(service(), app)).toHaveLength(6)
      const erased = await app.call('POST', '/collections/c/erase', { field: 'id', value: 'first' })
      expect(erased.status, erased.text).toBe(200)
      expect(await find('Wien')).toEqual(more.filter((id) => id !== 'first'))
      expect(await check(service())).toEqual([undefined, true])
    })

    test('stores under way while a field is declared are found by it', async () => {
      const app = await createData(service())
      await app.create({ name: 'c' })
      await change(app, 'add', ['c'])
      const stores = Array.from({ length: 30 }, (_, n) =>
        app.store('c', [{ id: `r${n}`, city: 'Wien' }]),
      )
      const fields = { city: { index: true } }
      const declared = await app.call('PUT', '/collections/c', { schema_definition: { fields } })
      expect(declared.status, declared.text).toBe(200)
      await Promise.all(stores)
      expect((await app.list('c', { find: { city: 'Wien' } })).body.total).toBe(30)
    })

    test('tokens tell equal values of one field and epoch, and without the key nobody can try a value', async () => {
      const app = await createData(service())
      await app.call('POST', '/encryption', { private_app: true })
      const fields = { city: { index: true }, town: { index: true } }
      for (const name of ['a', 'b']) {
        await app.create({ name, schema_definition: { fields } })
        await app.store(name, [
          { id: '1', city: 'Wien', town: 'Wien' },
          { id: '2', city: 'Wien', town: 'Graz' },
        ])
      }
      service().world.advance((dataKeyDaysMax + 1) * 24 * 3_600_000)
      await app.store('a', [{ id: '3', city: 'Wien' }])
      const tokens = await listTokens(service(), app)
      const [one, two] = tokens
      expect(one?.[0]).toBe(two?.[0])
      // Two of `a`, two of `b` and one of the next epoch: nothing else is equal.
      expect(new Set(tokens.flat()).size).toBe(tokens.flat().length - 2)
      const guesses = ['Wien', '"Wien"', JSON.stringify(['field', 'city', 'string', 'Wien'])]
      const hashes = guesses.flatMap((guess) => [
        createHash('sha256').update(guess).digest(),
        ...['', app.appId, 'a', 'city', 'tollbase field tokens'].map((key) =>
          createHmac('sha256', key).update(guess).digest(),
        ),
      ])
      const known = new Set(hashes.map((hash) => hash.subarray(0, 16).toString('base64url')))
      expect(tokens.flat().filter((token) => known.has(token))).toEqual([])
      expect(JSON.stringify(tokens)).not.toContain('Wien')
    })

    test('a field that is both encrypted and unique is refused', async () => {
      const app = await createData(service())
      await app.call('POST', '/encryption', { private_app: true })
      const fields = { city: { unique: true } }
      const made = await app.create({ name: 'c', schema_definition: { fields } })
      expect(made).toMatchObject({ status: 409, body: { code: 'NOT_ON_PRIVATE' } })
    })

    // The last one, as audits of the others would read it too.
    test('a declared field is found in a collection of which a list cannot open all; any other field is refused', async () => {
      const app = await createData(service())
      await app.call('POST', '/encryption', { private_app: true })
      await app.create({ name: 'large', schema_definition: { fields: { city: { index: true } } } })
      const text = 'x'.repeat(900_000)
      const count = Math.ceil(limits.openedBytesMax / (text.length * (4 / 3))) + 1
      for (let at = 0; at < count; at += 4)
        await app.queue(
          'large',
          Array.from({ length: 4 }, (_, n) => ({ id: `r${at + n}`, city: `c${at + n}`, text })),
        )
      await app.store('large', [{ id: 'last', city: 'c5' }])
      const found = await app.list('large', { find: { city: 'c5' }, select: { id: true } })
      expect(listIds(found), found.text).toEqual(['r5', 'last'])
      const within = { find: { city: { in: ['c1', 'c5'] }, id: { startsWith: 'l' } } }
      expect(listIds(await app.list('large', within))).toEqual(['last'])
      const refused = await app.list('large', { find: { text: 'x' } })
      expect(refused).toMatchObject({ status: 413, body: { code: 'RESULT_TOO_LARGE' } })
      expect(refused.body.error).toContain('index')
    })
  },
  { config: { encryptionUpdatePrice: 0n } },
)

async function deleteIndexes(app: Data, collection: string): Promise<void> {
  for (const { name } of (await app.call('GET', `/collections/${collection}`)).body.indexes) {
    const gone = await app.call('DELETE', `/collections/${collection}/indexes/${name}`)
    expect(gone.status, gone.text).toBe(200)
  }
}

/** The tokens of fields of all records of an application, in the order of storing. */
async function listTokens({ database, running }: TestService, app: Data): Promise<string[][]> {
  const { schema, data } = await running.service.tenants.load(app.appId)
  const rows = await Promise.all(
    [...data.catalog.byId.values()].map(({ table }) =>
      database.query<{ leaf: bigint; tokens: string | null }>(
        sql`SELECT leaf, data -> 'tokens' AS tokens FROM ${sql.id(schema, table)}`,
      ),
    ),
  )
  const sorted = rows.flat().sort((a, b) => Number(a.leaf - b.leaf))
  return sorted.flatMap(({ tokens }) => (tokens === null ? [] : [JSON.parse(tokens)]))
}
