import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import { startTestService, type TestService } from '../support/service.ts'
import { change, changeNames, compareAll, openPlace } from './history.ts'
import { type Answer, type Asked, askByHttp } from './uncached.ts'

/** Asks once the positions of all chains are certain, which they are not while a lease is renewed late. */
async function askSteadily(service: TestService, asked: Asked): Promise<Answer> {
  const { tenants } = service.running.service
  const isSteady = () =>
    tenants.listOpen().every(({ chain }) => chain.stillPosition() !== undefined)
  await expect.poll(isSteady).toBe(true)
  return askByHttp(service, asked)
}

/** Statements that the service sends for reads while the work runs; one may be sent twice. */
async function sentDuring(service: TestService, work: () => Promise<unknown>): Promise<number> {
  let count = 0
  const stop = service.running.service.queryRunner.database.observe(() => {
    count += 1
  })
  await work()
  stop()
  return count
}

async function readLookups(service: TestService): Promise<{ hits: number; misses: number }> {
  const { text } = await service.request('GET', '/metrics')
  const readCount = (result: string) =>
    Number(
      new RegExp(`^tollbase_query_answers_total\\{result="${result}"\\} (\\d+)$`, 'm').exec(
        text,
      )?.[1] ?? 0,
    )
  return { hits: readCount('hit'), misses: readCount('miss') }
}

async function define(data: Data, body: object): Promise<void> {
  const reply = await data.call('POST', '/queries', body)
  expect(reply.status, reply.text).toBe(201)
}

describe('the result cache', () =>
  withService(
    (service) => {
      test('an answer is given again without the database, byte for byte and in each format, until a write, and never where it holds the time', async () => {
        const data = await createData(service())
        await data.publish('items', [
          { id: 'a', n: 1.5 },
          { id: 'b', n: 2, word: 'ü, "x"' },
        ])
        await define(data, {
          name: 'q',
          source_collection: 'items',
          parameters: [{ name: 'n', field_path: 'n.$gte', type: 'number', default: 0 }],
        })
        const sql = `SELECT i.id, now() AS t FROM "${data.appId}"::items i`
        await define(data, { name: 'timed', sql })
        const ask = (more: Partial<Asked> = {}) =>
          askSteadily(service(), { app: data.appId, name: 'q', values: {}, ...more })
        for (const format of ['json', 'csv', 'ndjson'] as const) {
          const first = await ask({ format })
          expect(first.status, first.text).toBe(200)
          const again = async () => expect(await ask({ format })).toEqual(first)
          expect(await sentDuring(service(), again), format).toBe(0)
        }
        for (const values of [{ n: '0.0' }, { n: '+0' }])
          expect(await sentDuring(service(), () => ask({ values }))).toBe(0)
        for (const values of [{ n: '2' }, { limit: '1' }, { offset: '1' }])
          expect(await sentDuring(service(), () => ask({ values }))).toBeGreaterThan(0)
        await data.publish('others', [{ id: 'x' }])
        expect(await sentDuring(service(), () => ask())).toBeGreaterThan(0)
        const timed = () => ask({ name: 'timed' })
        await timed()
        expect(await sentDuring(service(), timed)).toBeGreaterThan(0)
      })

      test('answers of a view are kept while the view is where its chain is, and never while it is behind or its position is not stated', async () => {
        const [data, other] = [await createData(service()), await createData(service())]
        await data.publish('items', [{ id: 'a' }])
        await other.publish('items', [{ id: 'a' }])
        const from = `FROM "${data.appId}"::items i JOIN "${other.appId}"::live v ON v.id = i.id`
        for (const owner of [data, other])
          for (const refresh_mode of ['live', 'lazy'])
            await owner.call('POST', '/views', {
              name: refresh_mode,
              source_collections: ['items'],
              query: { select: ['id'] },
              refresh_mode,
            })
        await define(data, { name: 'live', source_collection: 'live' })
        await define(data, { name: 'lazy', source_collection: 'lazy' })
        await define(data, { name: 'far', sql: `SELECT v.id ${from}` })
        for (const [name, isKept] of [
          ['live', true],
          ['lazy', false],
          ['far', false],
        ] as const) {
          const ask = () => askSteadily(service(), { app: data.appId, name, values: {} })
          expect((await ask()).status).toBe(200)
          expect((await sentDuring(service(), ask)) === 0, name).toBe(isKept)
        }
      })

      test('an answer of a view of records of another application is never kept: it may erase them while the chain of the view stands', async () => {
        const [data, other] = [await createData(service()), await createData(service())]
        await other.publish('items', [
          { id: 'a', word: 'planted' },
          { id: 'b', word: 'theirs' },
        ])
        await other.call('POST', '/grants', { grantee: data.appId, collection: 'items' })
        const made = await data.call('POST', '/views', {
          name: 'far',
          source_collections: [`${other.appId}::items`],
          query: { select: ['id', 'word'] },
          refresh_mode: 'lazy',
        })
        expect(made.status, made.text).toBe(201)
        await define(data, { name: 'q', source_collection: 'far' })
        expect((await data.call('POST', '/views/far/refresh')).status).toBeLessThan(300)
        const ask = () =>
          askSteadily(service(), { app: data.appId, name: 'q', values: {}, by: data })
        await expect.poll(async () => (await ask()).text, { timeout: 20_000 }).toContain('planted')
        await ask()
        const erased = await other.call('POST', '/collections/items/erase', {
          ...{ field: 'id', value: 'a' },
        })
        expect(erased.body.versions, erased.text).toBe(1)
        const { text } = await ask()
        expect(text).toContain('theirs')
        expect(text).not.toContain('planted')
      })

      test('the cache is no way around a price: a buyer neither finds nor leaves an answer in it', async () => {
        const data = await createData(service())
        await data.publish('items', [{ id: 'a' }])
        const query = { name: 'q', source_collection: 'items', public: true }
        await define(data, query)
        const asked = { app: data.appId, name: 'q', values: { limit: '5' } }
        for (let time = 0; time < 2; time++)
          expect((await askByHttp(service(), asked)).status).toBe(200)
        await define(data, { ...query, price: { per_row: '7' } })
        // Versions that were free before stay so; a rule is for all versions.
        for (const [version, status] of [
          [1, 200],
          [2, 402],
        ] as const)
          expect((await askByHttp(service(), { ...asked, version })).status).toBe(status)
        // Its owner reads for free, and may cause a cached result that others are not given.
        for (const hits of [0, 1]) {
          const before = await readLookups(service())
          expect((await askSteadily(service(), { ...asked, by: data })).status).toBe(200)
          const between = await readLookups(service())
          expect(between.hits - before.hits).toBe(hits)
          expect((await askByHttp(service(), asked)).status).toBe(402)
          expect(await readLookups(service())).toEqual(between)
        }
        await define(data, { ...query, price: {} })
        const rule = { operation: 'read', target: { query: 'q' }, model: 'per_access', amount: '3' }
        expect((await askByHttp(service(), asked)).status).toBe(200)
        const priced = await data.call('PUT', '/pricing', { rules: [rule] })
        expect(priced.status, priced.text).toBe(200)
        for (const version of [{}, { version: 1 }, { version: 2 }])
          expect((await askByHttp(service(), { ...asked, ...version })).status).toBe(402)
      })

      test('a kept answer never hides a write that was acknowledged as shown, and never goes back behind an answer that was seen', async () => {
        const data = await createData(service())
        await data.create({ name: 'counters', access_policy: 'public' })
        const sql = `SELECT max(c.n) AS n FROM "${data.appId}"::counters c`
        await define(data, { name: 'top', sql })
        const asked = { app: data.appId, name: 'top', values: {} }
        const top = async (): Promise<number> => {
          const { status, text } = await askByHttp(service(), asked)
          expect(status, text).toBe(200)
          return JSON.parse(text).data[0].n ?? -1
        }
        let isOver = false
        const read = async () => {
          for (let last = -1; !isOver; ) {
            const { body } = await data.list('counters', {
              sortBy: 'n',
              sortDirection: 'desc',
              limit: 1,
            })
            const listed = body.records[0]?.n ?? -1
            const now = await top()
            expect(now).toBeGreaterThanOrEqual(Math.max(last, listed))
            last = await top()
            expect(last).toBeGreaterThanOrEqual(now)
          }
        }
        const before = await readLookups(service())
        const readers = [read(), read()]
        try {
          for (let n = 0; n < 40; n++) {
            const { status } = await data.store('counters', [{ id: `c${n % 7}`, n }])
            expect(status).toBe(200)
            expect(await top()).toBe(n)
            expect(await top()).toBe(n)
          }
        } finally {
          isOver = true
          await Promise.all(readers)
        }
        expect((await readLookups(service())).hits).toBeGreaterThan(before.hits)
      })

      test('kept answers equal fresh ones after any history of writes, definitions, rights and prices', async () => {
        let hits = 0
        await fc.assert(
          fc.asyncProperty(
            fc.array(fc.record({ name: fc.constantFrom(...changeNames), draw: fc.nat(1000) }), {
              minLength: 10,
              maxLength: 15,
            }),
            async (history) => {
              const before = await readLookups(service())
              const place = await openPlace(service())
              for (const { name, draw } of history) {
                await change(place, name, draw)
                await compareAll(service(), place, draw)
              }
              hits += (await readLookups(service())).hits - before.hits
            },
          ),
          { numRuns: 2, endOnFailure: true },
        )
        expect(hits).toBeGreaterThan(20)
      })
    },
    { config: { networks: [idleNetwork] } },
  ))

test('no answer is kept where the configuration gives the cache no memory', async () => {
  const service = await startTestService({ config: { resultCacheBytes: 0 } })
  try {
    const data = await createData(service)
    await data.publish('items', [{ id: 'a' }])
    await define(data, { name: 'q', source_collection: 'items' })
    const ask = () => askSteadily(service, { app: data.appId, name: 'q', values: {} })
    const first = await ask()
    const again = async () => expect(await ask()).toEqual(first)
    expect(await sentDuring(service, again)).toBeGreaterThan(0)
    expect(await readLookups(service)).toEqual({ hits: 0, misses: 0 })
  } finally {
    await service.close()
  }
})
