import { limits } from '@tollbase/contract/limits'
import { expect, test, vi } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

withService((service) => {
  test('stores, reads by key and the lists of others go on, however many lists are stuck', async () => {
    const [data, other] = [await createData(service()), await createData(service())]
    await other.publish('notes', [{ id: 'c' }])
    await data.store('held', [{ id: 'a', n: 1 }])
    await data.store('other', [{ id: 'b', n: 2 }])
    const { schema, data: projection } = await service().running.service.tenants.load(data.appId)
    const table = projection.catalog.byName.get('held')?.table ?? ''
    const { semaphore } = service().running.service.queryRunner
    const lists = await service().database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
      const stuck = Array.from({ length: 32 }, () => data.list('held', { find: { n: 1 } }))
      // More queries are stuck than there are connections, and each is soon told from a short one.
      await vi.waitFor(() => expect(semaphore.stats()).toEqual({ running: 2, waiting: 30 }), {
        timeout: 3_000,
      })
      for (const reply of [await other.list('notes'), await other.listOpenly('notes')])
        expect(reply.body.records, reply.text).toEqual([{ id: 'c' }])
      // Each of these would wait for as long as the lists do if it needed one of their connections.
      expect((await data.store('other', [{ id: 'c', n: 3 }])).status).toBe(200)
      const strict = await data.store('other', [{ id: 'd' }], { strict: true })
      expect(strict.status, strict.text).toBe(200)
      expect((await data.record('other', 'c')).body.record).toEqual({ id: 'c', n: 3 })
      return stuck
    })
    for (const reply of await Promise.all(lists))
      expect(reply.body.records, reply.text).toEqual([{ id: 'a', n: 1 }])
  })

  test('stores and payments go on, however many batches are stuck at their conditions', async () => {
    const [data, other] = [await createData(service()), await createData(service())]
    await other.store('notes', [{ id: 'a' }])
    const names = Array.from({ length: 12 }, (_, n) => `held${n}`)
    for (const name of names) await data.store(name, [{ id: 'a', n: 1 }])
    const { schema, data: projection } = await service().running.service.tenants.load(data.appId)
    const { semaphore } = service().running.service.queryRunner
    const batches = await service().database.transaction(async (tx) => {
      for (const name of names) {
        const table = projection.catalog.byName.get(name)?.table ?? ''
        await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
      }
      const stuck = names.map((collection) =>
        data.call('POST', '/batch', {
          operations: [
            {
              operation: 'update',
              collection,
              data: { n: 2 },
              conditions: { n: { greaterThan: 0 } },
            },
          ],
        }),
      )
      await vi.waitFor(() => expect(semaphore.stats()).toEqual({ running: 2, waiting: 10 }), {
        timeout: 3_000,
      })
      // Strict, so that it reads before it writes.
      const stored = await other.store('notes', [{ id: 'b' }], { strict: true })
      expect(stored.status, stored.text).toBe(200)
      return stuck
    })
    // On a slow day some have waited too long.
    for (const { status, text } of await Promise.all(batches))
      expect([200, 503], text).toContain(status)
  })

  test.each([
    ['histories', 'held', 'GET /collections/held/records/a/history'],
    ['previews', 'held', 'GET /collections/held/preview'],
    ['costs of retention', 'held', 'GET /collections/held/retention/cost'],
    ['descriptions of views', 'seen', 'GET /views/seen'],
    ['lists of views', 'seen', 'GET /views'],
    ['plans', 'held', 'POST /collections/held/explain'],
    ['dry runs', 'held', 'POST /queries/asked/dry-run'],
  ])('stores and payments go on, however many %s are stuck', async (_, name, request) => {
    const [data, other] = [await createData(service()), await createData(service())]
    await other.store('notes', [{ id: 'a' }])
    await data.publish('held', [{ id: 'a', n: 1 }])
    const view = { name: 'seen', source_collections: ['held'], query: {}, refresh_mode: 'lazy' }
    expect((await data.call('POST', '/views', view)).status).toBe(201)
    const query = { name: 'asked', source_collection: 'held', base_query: { find: { n: 1 } } }
    expect((await data.call('POST', '/queries', query)).status).toBe(201)
    const [method = '', path = ''] = request.split(' ')
    const body = path.endsWith('/explain') ? { query: { find: { n: 1 } } } : undefined
    const { schema, data: projection } = await service().running.service.tenants.load(data.appId)
    const { byName, viewsByName } = projection.catalog
    const { table = '' } = byName.get(name) ?? viewsByName.get(name) ?? {}
    const { semaphore } = service().running.service.queryRunner
    const asked = await service().database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
      const stuck = Array.from({ length: 12 }, () => data.call(method, path, body))
      await vi.waitFor(() => expect(semaphore.stats()).toEqual({ running: 2, waiting: 10 }), {
        timeout: 3_000,
      })
      const stored = await other.store('notes', [{ id: 'b' }], { strict: true })
      expect(stored.status, stored.text).toBe(200)
      return stuck
    })
    // On a slow day some have waited too long.
    for (const { status, text } of await Promise.all(asked))
      expect([200, 503], text).toContain(status)
  })

  test('heavy queries wait for their turn, too many from one caller get 429 with Retry-After, and others go on', async () => {
    const [data, other] = [await createData(service()), await createData(service())]
    await data.store('held', [{ id: 'a', n: 1 }])
    await data.store('other', [{ id: 'b', n: 2 }])
    await other.store('notes', [{ id: 'c' }])
    const { schema, data: projection } = await service().running.service.tenants.load(data.appId)
    const table = projection.catalog.byName.get('held')?.table ?? ''
    const countRecords = ({ appId, headers }: Data, name: string) =>
      service().request('POST', '/query/sql', {
        body: { sql: `SELECT count(*) AS n FROM "${appId}"::${name}` },
        headers,
      })
    const most = limits.queriesAtOnceMax / 2 + limits.queriesWaitingOfCallerMax
    // Nothing that reads the table ends before this transaction does.
    const replies = await service().database.transaction(async (tx) => {
      await tx.execute(sql`LOCK TABLE ${sql.id(schema, table)} IN ACCESS EXCLUSIVE MODE`)
      const early: TestReply[] = []
      const asked = Array.from({ length: most + 3 }, async () => {
        const reply = await countRecords(data, 'held')
        early.push(reply)
        return reply
      })
      await vi.waitFor(() => expect(early).toHaveLength(3), { timeout: 9_000 })
      for (const { status, body, headers } of early) {
        expect(status).toBe(429)
        expect(body.code).toBe('RATE_LIMITED')
        expect(body.details.limit).toBe('queries_of_caller')
        expect(headers.get('retry-after')).toBe('2')
      }
      expect((await data.list('other')).body.records).toEqual([{ id: 'b', n: 2 }])
      // A list with a join is tried as one without: nothing of it waits for the turns of heavy queries.
      const find = { own: { model: 'other', resolve: { find: { id: '$data.id' } } } }
      expect((await data.list('other', { find })).body.records).toEqual([
        { id: 'b', n: 2, own: [{ id: 'b', n: 2 }] },
      ])
      expect((await countRecords(other, 'notes')).body.data).toEqual([{ n: 1 }])
      return asked
    })
    const statuses = (await Promise.all(replies)).map(({ status }) => status)
    // On a slow day some have waited too long.
    expect(statuses.filter((status) => ![200, 429, 503].includes(status))).toEqual([])
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThan(0)
    expect((await countRecords(data, 'held')).body.data).toEqual([{ n: 1 }])
  })

  test('a caller who hangs up ends the statement and frees the slot and the place in the queue', async () => {
    const data = await createData(service())
    await data.store(
      'numbers',
      Array.from({ length: 300 }, (_, n) => ({ id: `${n}`, n })),
    )
    const { semaphore } = service().running.service.queryRunner
    const from = ['a', 'b', 'c', 'd'].map((name) => `"${data.appId}"::numbers AS ${name}`)
    const body = JSON.stringify({ sql: `SELECT count(*) AS n FROM ${from.join(', ')}` })
    const gone = new AbortController()
    const asked = Array.from({ length: 6 }, () =>
      fetch(`${service().url}/query/sql`, {
        method: 'POST',
        headers: { ...data.headers, 'content-type': 'application/json' },
        body,
        signal: gone.signal,
      }).catch(() => undefined),
    )
    await vi.waitFor(() => expect(semaphore.stats()).toEqual({ running: 2, waiting: 4 }))
    const active = () =>
      service().database.query(sql`
        SELECT pid FROM pg_catalog.pg_stat_activity
        WHERE datname = current_database() AND state = 'active' AND query LIKE '%count(%' AND pid <> pg_backend_pid()`)
    await vi.waitFor(async () => expect(await active()).toHaveLength(2))
    gone.abort()
    await Promise.all(asked)
    await vi.waitFor(() => expect(semaphore.stats()).toEqual({ running: 0, waiting: 0 }), {
      timeout: 2_000,
    })
    expect(await active()).toEqual([])
  })

  test('a caller who hangs up while others are at work leaves the queue at once', async () => {
    const data = await createData(service())
    await data.store('numbers', [{ id: '1', n: 1 }])
    const { semaphore } = service().running.service.queryRunner
    let release: () => void = () => undefined
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const turn = { application: data.appId, caller: 'another', rank: 'key' } as const
    const working = [1, 2].map(() => semaphore.run(turn, () => held))
    const gone = new AbortController()
    const asked = fetch(`${service().url}/query/sql`, {
      method: 'POST',
      headers: { ...data.headers, 'content-type': 'application/json' },
      body: JSON.stringify({ sql: `SELECT count(*) AS n FROM "${data.appId}"::numbers` }),
      signal: gone.signal,
    }).catch(() => undefined)
    await vi.waitFor(() => expect(semaphore.stats()).toEqual({ running: 2, waiting: 1 }))
    gone.abort()
    await asked
    await vi.waitFor(() => expect(semaphore.stats()).toEqual({ running: 2, waiting: 0 }), {
      timeout: 2_000,
    })
    release()
    await Promise.all(working)
  })
})
