import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import {
  type Json,
  startTestService,
  type TestReply,
  type TestService,
} from '../support/service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService()
})
afterAll(() => service?.close())

const numbers = (count: number, from = 0) =>
  Array.from({ length: count }, (_, at) => ({ id: `r${from + at}`, n: (from + at) % 7 }))

async function openList(records: readonly object[] = numbers(20)): Promise<Data> {
  const data = await createData(service)
  await data.publish('c', records)
  return data
}

/** Returns the answer to the cursor of a first page of two, used beside other requests. */
async function refusal(reply: Promise<TestReply>): Promise<string> {
  const { status, body, text } = await reply
  expect(status, text).toBe(400)
  return body.details.field
}

async function readRest(data: Data, query: object, first: TestReply): Promise<Json[]> {
  const pages: Json[] = [...first.body.records]
  for (let cursor = first.body.next_cursor; cursor !== undefined; ) {
    const reply = await data.list('c', { ...query, cursor })
    expect(reply.status, reply.text).toBe(200)
    expect(reply.body.as_of).toEqual(first.body.as_of)
    expect(reply.body.total).toBe(first.body.total)
    pages.push(...reply.body.records)
    cursor = reply.body.next_cursor
  }
  return pages
}

describe('cursors of pages', () => {
  test('the answer has a cursor where a limit was given and more records follow, and not otherwise', async () => {
    const data = await openList(numbers(4))
    for (const [query, isThere] of [
      [{}, false],
      [{ limit: 3 }, true],
      [{ limit: 4 }, false],
      [{ limit: 5 }, false],
      [{ limit: 0 }, false],
      [{ limit: 2, offset: 1 }, true],
      [{ limit: 2, offset: 2 }, false],
      [{ limit: 2, offset: 9 }, false],
    ] as const) {
      const { body } = await data.list('c', query)
      expect(typeof body.next_cursor, JSON.stringify(query)).toBe(isThere ? 'string' : 'undefined')
    }
  })

  test('a cursor goes on after an offset, and counts the pages', async () => {
    const data = await openList(numbers(10))
    const first = await data.list('c', { limit: 3, offset: 3 })
    const { body } = await data.list('c', { limit: 3, cursor: first.body.next_cursor })
    expect(body.records.map((one: Json) => one.id)).toEqual(['r6', 'r7', 'r8'])
    expect(body).toMatchObject({ page: 3, limit: 3, total: 10 })
  })

  test('a cursor neither skips nor repeats what was there, whatever is written meanwhile', async () => {
    const data = await openList()
    const query = { limit: 3, sortBy: 'n' }
    const whole = await data.list('c', { sortBy: 'n' })
    const first = await data.list('c', query)
    await data.store('c', [
      { id: 'r3', n: -1 },
      { id: 'r19', n: 100 },
      { id: 'r5', deleted: true },
      { id: 'new', n: 3 },
    ])
    expect(await readRest(data, query, first)).toEqual(whole.body.records)
  })

  test('a cursor goes on with another limit, with members in another order, and after a restart', async () => {
    const data = await openList()
    const find = { n: { gte: 1, lte: 5 }, id: { startsWith: 'r' } }
    const whole = await data.list('c', { find })
    const first = await data.list('c', { find, limit: 2 })
    await service.restart()
    const other = { id: { startsWith: 'r' }, n: { lte: 5, gte: 1 } }
    expect(await readRest(data, { find: other, limit: 5 }, first)).toEqual(whole.body.records)
  })

  test('a cursor keeps to the versions of its height where history is read', async () => {
    const data = await openList(numbers(5))
    await data.store('c', numbers(3))
    const query = { include_history: true, sortBy: 'n', sortDirection: 'desc' }
    const whole = await data.list('c', query)
    const first = await data.list('c', { ...query, limit: 2 })
    await data.store('c', numbers(5))
    expect(await readRest(data, { ...query, limit: 2 }, first)).toEqual(whole.body.records)
  })

  test('a cursor is refused for another query, collection, application or reader, and when it was changed', async () => {
    const data = await openList()
    await data.create({ name: 'd' })
    await data.store('d', numbers(20))
    const other = await openList()
    const find = { n: { gte: 1 } }
    const { cursor } = { cursor: (await data.list('c', { find, limit: 2 })).body.next_cursor }
    const last = cursor.endsWith('A') ? 'B' : 'A'
    const asked = { find, limit: 2, cursor }
    expect((await data.list('c', asked)).status).toBe(200)
    for (const reply of [
      data.list('c', { limit: 2, cursor }),
      data.list('c', { ...asked, find: { n: { gte: 0 } } }),
      data.list('c', { ...asked, select: { id: true } }),
      data.list('c', { ...asked, sortBy: 'n' }),
      data.list('c', { ...asked, include_history: true }),
      data.list('d', asked),
      other.list('c', asked),
      data.listOpenly('c', asked),
      data.list('c', { ...asked, cursor: `${cursor.slice(0, 20)}B${cursor.slice(21)}` }),
      data.list('c', { ...asked, cursor: cursor.slice(0, -1) + last }),
      data.list('c', { ...asked, cursor: '' }),
      data.list('c', { ...asked, cursor: 7 }),
    ])
      expect(await refusal(reply)).toBe('/cursor')
    expect(await refusal(data.list('c', { ...asked, offset: 1 }))).toBe('/offset')
  })

  test('a cursor is refused once a field has become unique, which changes the live records', async () => {
    const data = await openList()
    const { body } = await data.list('c', { limit: 2 })
    await data.call('POST', '/collections/c/indexes', { field: 'n', name: 'by_n', unique: true })
    const after = await data.list('c', { limit: 2 })
    expect(after.body.total).toBe(7)
    expect(await refusal(data.list('c', { limit: 2, cursor: body.next_cursor }))).toBe('/cursor')
  })

  test('a cursor is refused by a new collection of the same name', async () => {
    const data = await openList()
    const { body } = await data.list('c', { limit: 2 })
    await data.call('DELETE', '/collections/c')
    await data.create({ name: 'c' })
    await data.store('c', numbers(20))
    expect(await refusal(data.list('c', { limit: 2, cursor: body.next_cursor }))).toBe('/cursor')
  })

  test('a cursor ends after its hour, however often it is renewed', async () => {
    const data = await openList()
    const first = await data.list('c', { limit: 2 })
    service.world.advance(3_590_000)
    const second = await data.list('c', { limit: 2, cursor: first.body.next_cursor })
    expect(second.status).toBe(200)
    service.world.advance(20_000)
    const late = data.list('c', { limit: 2, cursor: second.body.next_cursor })
    expect(await refusal(late)).toBe('/cursor')
    expect((await late).body.error).toContain('expired')
  })
})
