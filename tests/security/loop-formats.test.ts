import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectQuick, type HeldPlace, many, openHeldPlace } from './held-loop.ts'

/** Such an answer held the loop for 0.3 to 1.3 s, and ended the process where its records had many more names. */
const holdMsMax = 60
/** More than any of the collections has: each request has another limit, and is not answered from a cache. */
let limit = 50_000

let place: HeldPlace
const collections = ['plain', 'sparse', 'texts', 'names'] as const
/** A query of one row, whose cells are megabytes together. */
const wideSql = `SELECT ${many(24, (at) => `t.quotes AS c${at}`).join()} FROM loopy::texts AS t WHERE t.n = 0`
const queries = [...collections, 'wide']
beforeAll(async () => {
  place = await openHeldPlace()
  const store = (name: string, data: readonly object[]) =>
    place.ask('POST', '/store?wait=true', { root: `loopy::${name}`, data })
  for (const name of collections) {
    await place.ask('POST', '/api/apps/loopy/collections', { name, access_policy: 'public' })
    await place.ask('POST', '/api/apps/loopy/queries', { name, source_collection: name })
  }
  for (let from = 0; from < 40_000; from += 10_000)
    await store(
      'plain',
      many(10_000, (at) => ({ id: `r${from + at}`, name: `Name ${at}`, n: at, ok: at % 2 === 0 })),
    )
  await store(
    'sparse',
    many(4_000, (at) => ({ id: `r${at}`, [`k${at}`]: 1 })),
  )
  await store(
    'texts',
    many(4, (at) => ({ id: `r${at}`, n: at, quotes: '"'.repeat(at === 0 ? 64_000 : 450_000) })),
  )
  for (let from = 0; from < 8; from += 4)
    await store(
      'names',
      many(4, (at) => ({ id: `r${from + at}`, [`${from + at}${'"'.repeat(490_000)}`]: at })),
    )
  await place.ask('POST', '/api/apps/loopy/queries', { name: 'wide', sql: wideSql })
}, 240_000)
afterAll(() => place?.close())

describe('an answer of megabytes in another format than JSON does not hold the event loop', () => {
  test.each(queries.flatMap((name) => ['csv', 'ndjson'].map((format) => [name, format] as const)))(
    '%s as %s',
    async (name, format) => {
      const path = `/api/queries/loopy/${name}/data?format=${format}`
      const make = () => ({ method: 'GET', path: `${path}&limit=${limit++}` })
      await expectQuick(place.client, make, holdMsMax)
    },
    120_000,
  )

  test('many records, each with a field of its own, are 413 as CSV at once, with a limit that does', async () => {
    const ask = (more: string) =>
      place.service.request('GET', `/api/queries/loopy/sparse/data?format=csv${more}`)
    const refused = await ask('')
    expect(refused.status, refused.text.slice(0, 200)).toBe(413)
    expect(refused.body.code).toBe('RESULT_TOO_LARGE')
    const { limit: most } = refused.body.details
    expect(most).toBeGreaterThan(1000)
    const fitting = await ask(`&limit=${most}`)
    expect(fitting.status).toBe(200)
    expect(fitting.text.split('\r\n')).toHaveLength(most + 2)
  })
})
