import { execFileSync } from 'node:child_process'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { dayMs, keepFor, sweep } from '../retention/sweep.ts'
import { createData, type Data, listIds, makeData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestService } from '../support/service.ts'
import { askSigned, createSigned, makeTestWallet } from '../support/wallet.ts'

const free = { config: { encryptionUpdatePrice: 0n, registration: 'open' } } as const

async function createQueryable(service: TestService): Promise<Data> {
  const app = await createData(service)
  await app.create({ name: 'notes' })
  const set = await turn(app, true)
  expect(set.body.queryable_collections).toEqual(['notes'])
  expect(set.body.message).toContain('operator can read them')
  const schema_definition = { fields: { city: { type: 'string', index: true } } }
  const put = await app.call('PUT', '/collections/notes', { schema_definition })
  expect(put.status, put.text).toBe(200)
  return app
}

async function turn(app: Data, queryable: boolean) {
  const body = { action: 'add', collections: ['notes'], queryable }
  const set = await app.call('POST', '/encryption', body)
  expect(set.status, set.text).toBe(200)
  return set
}

function ask(service: TestService, app: Data, text: string) {
  const body = { sql: text.replaceAll('$', `"${app.appId}"::`) }
  return service.request('POST', '/query/sql', { body, headers: app.headers })
}

async function readPlaintext(service: TestService, app: Data): Promise<string> {
  const { schema } = await service.running.service.tenants.load(app.appId)
  const tables = await service.database.query<{ name: string }>(sql`
    SELECT relname::text AS name FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
    WHERE nspname = ${schema} AND relkind = 'r' AND relname ~ '^p_[0-9]+$'`)
  let text = ''
  for (const { name } of tables)
    for (const { body } of await service.database.query<{ body: string }>(
      sql`SELECT body FROM ${sql.id(schema, name)} ORDER BY leaf`,
    ))
      text += body
  return tables.length === 0 ? 'no table' : text
}

const people = [
  { id: 'a', n: 2, city: 'Wien' },
  { id: 'b', n: 1.5e3, city: 'Graz' },
  { id: 7, n: 3, city: 'Wien' },
]

withService((service) => {
  test('a queryable collection is queried as any other, at a position that the answers state', async () => {
    const app = await createQueryable(service())
    await app.store('rooms', [{ id: 'r1', city: 'Wien' }])
    await app.store('notes', people)
    const groups = await ask(
      service(),
      app,
      'SELECT city, count(*) AS n FROM $notes GROUP BY city ORDER BY city',
    )
    expect(groups.body.data, groups.text).toEqual([
      { city: 'Graz', n: 1 },
      { city: 'Wien', n: 2 },
    ])
    const found = await app.list('notes', { find: { city: { is: 'Wien' } }, sortBy: 'n' })
    expect(found.body, found.text).toMatchObject({ records: [people[0], people[2]], total: 2 })
    expect(found.body.as_of).toEqual((await app.record('notes', 'a')).body.as_of)
    const joined = await ask(
      service(),
      app,
      'SELECT n.id FROM $notes AS n JOIN $rooms AS r ON r.city = n.city ORDER BY n.n',
    )
    expect(joined.body.data, joined.text).toEqual([{ id: 'a' }, { id: 7 }])
    await app.store('notes', [
      { id: 'a', n: 9, city: 'Linz' },
      { id: 'b', deleted: true },
    ])
    expect(listIds(await app.list('notes', { sortBy: 'n' }))).toEqual([7, 'a'])
    expect((await app.list('notes', { include_history: true })).body.total).toBe(5)

    const query = {
      name: 'q',
      sql: `SELECT id FROM "${app.appId}"::notes ORDER BY n`,
      parameters: [],
    }
    const made = await app.call('POST', '/queries', query)
    expect(made.status, made.text).toBe(201)
    const path = `/api/queries/${app.appId}/q/data`
    const run = await service().request('GET', path, { headers: app.headers })
    expect(run.body.data, run.text).toEqual([{ id: 7 }, { id: 'a' }])
    expect((await service().request('GET', path)).status).toBeGreaterThanOrEqual(401)
    const off = await app.call('POST', '/encryption', {
      ...{ action: 'add', collections: ['notes'], queryable: false },
    })
    expect(off).toMatchObject({ status: 409, body: { code: 'NOT_ON_PRIVATE' } })
  })

  test('nobody else learns of it, and views, prices, grants, indexes and unique fields stay refused', async () => {
    const app = await createQueryable(service())
    await app.store('notes', people)
    expect((await app.listOpenly('notes')).status).toBe(404)
    const view = { name: 'v', source_collections: ['notes'], query: { find: {} } }
    const refused = [
      await app.call('POST', '/views', view),
      await app.call('PUT', '/collections/notes', { access_policy: 'public' }),
      await app.call('PUT', '/collections/notes', { access_policy: { price: { per_row: '1' } } }),
      await app.call('PUT', '/collections/notes', {
        schema_definition: { fields: { city: { type: 'string', unique: true } } },
      }),
    ]
    for (const one of refused)
      expect(one, one.text).toMatchObject({ status: 409, body: { code: 'NOT_ON_PRIVATE' } })
    for (const body of [
      { action: 'remove', collections: ['notes'], queryable: true },
      { private_app: true, queryable: true },
      { private_app: true, action: 'add', collections: ['notes'], queryable: true },
    ])
      expect((await app.call('POST', '/encryption', body)).body.details.field).toBe('/queryable')
  })

  test('nothing of it is in an answer that is bought, since that is kept', async () => {
    const app = await createQueryable(service())
    await app.store('notes', people)
    const seller = await createData(service())
    await seller.publish('codes', [{ id: 'c', city: 'Wien' }])
    const price = { price: { per_row: '100' }, derive: { per_access: '100' } }
    const put = await seller.call('PUT', '/collections/codes', { access_policy: price })
    expect(put.status, put.text).toBe(200)
    const joined = `SELECT n.id FROM $notes AS n JOIN "${seller.appId}"::codes AS c ON c.city = n.city`
    const asked = await ask(service(), app, joined)
    expect(asked, asked.text).toMatchObject({ status: 409, body: { code: 'NOT_ON_PRIVATE' } })
  })

  test('a predefined query, too, has plaintext of the application alone that its first source is of', async () => {
    const wallet = makeTestWallet()
    const make = async (name: string) => {
      const timestamp = Math.floor(service().world.now() / 1000)
      const asked = { body: JSON.stringify({ name }), timestamp }
      const { body } = await createSigned(service(), wallet, asked)
      const headers = { 'x-app-key': body.app_key }
      return makeData(service(), { ...body, appId: body.app_id, headers })
    }
    const [first, other] = [await make('first'), await make('other')]
    await first.store('codes', [{ id: 'c', city: 'Wien' }])
    await other.create({ name: 'notes' })
    await turn(other, true)
    await other.store('notes', people)
    const sql = `SELECT n.id FROM "${first.appId}"::codes AS c JOIN "${other.appId}"::notes AS n ON n.city = c.city`
    const made = await askSigned(service(), wallet, {
      method: 'POST',
      path: `/api/apps/${first.appId}/queries`,
      body: { name: 'joined', sql, parameters: [] },
    })
    expect(made, made.text).toMatchObject({ status: 409, body: { code: 'NOT_ON_PRIVATE' } })
    expect(made.body.error).toContain('name a source of its own application first')
  })

  test('readers and writers wait for a table that is behind, for a bounded time', async () => {
    const app = await createQueryable(service())
    service().world.atFailpoints((point) => {
      if (point === 'plaintext.opened') throw new Error('broken off')
    })
    const begun = Date.now()
    // The records are in the log, whatever becomes of the table.
    expect((await app.store('notes', people)).status).toBe(200)
    expect(Date.now() - begun).toBeGreaterThanOrEqual(limits.plaintextWriteWaitMs - 100)
    await service().restart()
    const asked = await app.list('notes')
    expect(asked, asked.text).toMatchObject({ status: 503, body: { code: 'UNAVAILABLE' } })
    expect(asked.headers.get('retry-after')).toBe('1')
    service().world.atFailpoints(() => undefined)
    await expect.poll(async () => (await app.list('notes')).body.total).toBe(3)
  })

  test('what is planted is in no file but the table that is turned off, dropped and gone', async () => {
    const app = await createQueryable(service())
    const secret = `planted${'x'.repeat(40)}${Date.now()}`
    await app.store('notes', [{ id: 'a', text: secret, city: secret }])
    expect(await readPlaintext(service(), app)).toContain(secret)
    await service().database.execute(sql`ANALYZE`)
    await turn(app, false)
    await service().database.execute(sql`CHECKPOINT`)
    expect(await readPlaintext(service(), app)).toBe('no table')
    const [place] = await service().database.query<{ folder: string }>(
      sql`SELECT current_setting('data_directory') AS folder`,
    )
    for (const folder of [place?.folder ?? '', service().config.dataDir])
      expect(() => execFileSync('grep', ['-r', '-l', '-a', secret, folder])).toThrow()
    expect((await app.record('notes', 'a')).body.record.text).toBe(secret)
    const asked = await ask(service(), app, 'SELECT count(*) AS n FROM $notes')
    expect(asked, asked.text).toMatchObject({ status: 409, body: { code: 'NOT_ON_PRIVATE' } })
    expect(asked.body.error).toContain('queryable')
  })

  test('a collection with records says that it is queryable in the group of entries that begins its change', async () => {
    const app = await createData(service())
    await app.create({ name: 'notes' })
    await app.store('notes', people)
    await turn(app, true)
    const { chain } = await service().running.service.tenants.load(app.appId)
    let begun = 0
    for await (const { entries } of chain.blocksFrom(1))
      for (const [at, entry] of entries.entries()) {
        if (entry?.header.kind !== 'resealing' || !entry.body.includes('"copying"')) continue
        begun += 1
        expect(entries[at - 1]?.body).toContain('"queryable":true')
      }
    expect(begun).toBe(1)
  })

  test('audit and rebuild need no keys for it, and the next start fills it again', async () => {
    const app = await createQueryable(service())
    await app.store('notes', people)
    const report = await service().whileStopped((config) => audit(config, () => undefined))
    expect(report.difference).toBeUndefined()
    const made = await service().whileStopped((config) => rebuild(config, () => undefined))
    expect(made.equal).toBe(true)
    await expect.poll(async () => (await app.list('notes')).body.total).toBe(3)
  })

  test('a person who is erased, and versions that expire, leave the table at once', async () => {
    const app = await createQueryable(service())
    await app.store('notes', people)
    await app.store('notes', [{ id: 'a', city: 'Linz' }])
    const erased = await app.call('POST', '/collections/notes/erase', { field: 'id', value: 'b' })
    expect(erased.status, erased.text).toBe(200)
    await expect.poll(() => readPlaintext(service(), app)).not.toContain('Graz')
    expect(listIds(await app.list('notes', { find: { n: 3 } }))).toEqual([7])
    service().world.advance(3 * dayMs)
    await app.store('notes', [{ id: 'c', city: 'Rom' }])
    await keepFor(service(), app, ['notes', 2])
    await sweep(service(), app)
    const left = await readPlaintext(service(), app)
    expect(left).toContain('Rom')
    expect(left).not.toContain('Wien')
    const report = await service().whileStopped((config) => audit(config, () => undefined))
    expect(report.difference).toBeUndefined()
  })

  test('an envelope that does not open is passed over and counted', async () => {
    const app = await createQueryable(service())
    const { schema } = await service().running.service.tenants.load(app.appId)
    await turn(app, false)
    await app.store('notes', people)
    const [table] = await service().database.query<{ name: string }>(sql`
      SELECT relname::text AS name FROM pg_catalog.pg_class AS class
      JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = relnamespace
      WHERE nspname = ${schema} AND relkind = 'r' AND relname LIKE 'c\\_%'`)
    const sealed = sql.id(schema, table?.name ?? '')
    await service().database.execute(sql`
      UPDATE ${sealed} SET body = overlay(body placing 'AAAA' from position('"ciphertext":"' in body) + 14)
      WHERE leaf = (SELECT min(leaf) FROM ${sealed})`)
    await turn(app, true)
    expect(listIds(await app.list('notes', { sortBy: 'n' }))).toEqual([7, 'b'])
    expect((await app.call('GET', '/encryption')).body.unopened_versions).toBe(1)
  })

  test('a follower that is broken off between a page and its position loses and doubles nothing', async () => {
    const app = await createQueryable(service())
    await turn(app, false)
    await app.store(
      'notes',
      Array.from({ length: 1_200 }, (_, n) => ({ id: `r${n}`, n })),
    )
    let broken = 0
    service().world.atFailpoints((point) => {
      if (!point.startsWith('plaintext.') || broken >= 2) return
      broken += 1
      throw new Error('broken off')
    })
    await turn(app, true)
    expect(broken).toBeGreaterThan(0)
    await service().restart()
    await expect
      .poll(async () => (await app.list('notes', { limit: 1 })).body.total, { timeout: 20_000 })
      .toBe(1_200)
  })

  test('without the master key queries answer 503 and the next start empties the table', async () => {
    const app = await createQueryable(service())
    await app.store('notes', people)
    await service().whileStopped(async ({ dataDir }) => rmSync(join(dataDir, 'master-keys')))
    const asked = await ask(service(), app, 'SELECT count(*) AS n FROM $notes')
    expect(asked, asked.text).toMatchObject({ status: 503 })
    await expect.poll(() => readPlaintext(service(), app)).toBe('')
    const readFiles = () =>
      service().database.query(sql`
        SELECT relname, pg_relation_filenode(oid) FROM pg_catalog.pg_class
        WHERE relname ~ '^p_[0-9]+$' ORDER BY oid`)
    const emptied = await readFiles()
    for (const id of ['a', 'b', 'c']) expect((await app.store('others', [{ id }])).status).toBe(200)
    expect(await ask(service(), app, 'SELECT count(*) AS n FROM $notes')).toMatchObject({
      status: 503,
    })
    // It is emptied once, and not by each that notices it.
    expect(await readFiles()).toEqual(emptied)
  })
}, free)
