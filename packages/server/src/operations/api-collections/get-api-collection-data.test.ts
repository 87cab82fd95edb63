import { createData, type Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { startUpstream, type TestUpstream } from '@tollbase/testing/upstream'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

let upstream: TestUpstream
beforeAll(async () => {
  upstream = await startUpstream()
})
afterAll(() => upstream.close())
/** The one host that the operator allows here. */
const url = () => `http://localhost:${upstream.port}`

describe('getApiCollectionData', () =>
  withService(
    (service) => {
      let seller: Data
      beforeEach(async () => {
        seller = await createData(service())
      })

      test('parameters are typed, each is encoded for its place, and none can lead elsewhere', async () => {
        await seller.call('POST', '/api-collections', {
          name: 'weather',
          upstream: { url: `${url()}/a/{city}?units=metric`, method: 'POST' },
          parameters: [
            { name: 'city', maxLength: 60 },
            { name: 'q', as: 'filter[q]', required: false },
            { name: 'tags', type: 'list', items: 'string', required: false },
            { name: 'n', type: 'integer', in: 'body', as: '__proto__', default: 5 },
            { name: 'on', type: 'boolean', in: 'body', required: false },
          ],
        })
        const ask = (query: string) => seller.call('GET', `/api-collections/weather/data?${query}`)
        const last = () => upstream.got.at(-1)
        const hostile = '?a=b&c#d;e%2f@evil.example:80 \u00e4+'
        const text = encodeURIComponent(hostile)
        expect((await ask(`city=${text}&q=${text}&tags=a%26b&tags=c&on=true`)).status).toBe(200)
        const asked = new URL(last()?.url ?? '', url())
        expect(last()?.url?.startsWith(`/a/${text}?units=metric&`)).toBe(true)
        expect([...asked.searchParams]).toEqual([
          ['units', 'metric'],
          ['filter[q]', hostile],
          ['tags', 'a&b'],
          ['tags', 'c'],
        ])
        expect(last()?.body).toBe('{"__proto__":5,"on":true}')
        expect(last()?.headers['content-type']).toBe('application/json')
        for (const city of [
          '..',
          '.',
          '...',
          'a/b',
          '/',
          'a\\b',
          '%00',
          'a%0d%0ab',
          '%2e%2e',
          '..%2fadmin',
        ]) {
          const encoded = city.includes('%') ? city : encodeURIComponent(city)
          const { status, body } = await ask(`city=${encoded}`)
          expect([status, body.details?.field], city).toEqual([400, '/query/city'])
        }
        const wrong: readonly (readonly [string, string])[] = [
          ['', '/query/city'],
          ['city=', '/query/city'],
          ['city=a&n=x', '/query/n'],
          ['city=a&n=1&n=2', '/query/n'],
          ['city=a&units=imperial', '/query/units'],
          ['city=a&limit=1', '/query/limit'],
          ['city=a&max_kb=0', '/query/max_kb'],
        ]
        for (const [query, field] of wrong) {
          const { status, body } = await ask(query)
          expect([status, body.details?.field], query).toEqual([400, field])
        }
      })
    },
    { config: { allowedUpstreams: [{ host: 'localhost', port: undefined }] } },
  ))
