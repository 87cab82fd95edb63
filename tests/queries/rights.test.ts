import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Validator } from '@seriousme/openapi-schema-validator'
import { beforeAll, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import { startTestService } from '../support/service.ts'

describe('a predefined query', () =>
  withService(
    (service) => {
      let data: Data
      let other: Data
      beforeAll(async () => {
        data = await createData(service())
        other = await createData(service())
        await data.create({ name: 'open', access_policy: 'public' })
        await data.create({ name: 'closed', access_policy: { read: 'private' } })
        await data.create({
          name: 'part',
          access_policy: { read: 'public', offered: { select: ['id'] } },
        })
        for (const name of ['open', 'closed', 'part'])
          await data.store(name, [
            { id: 'a', secret: 'xyzzy', '=name': '=1+2', 'two\nlines': 'say "so", then\r\ngo' },
            { id: 'b', secret: null, big: 12345678901234567000, list: [1, '2'] },
          ])
      })
      const define = async (body: object) => {
        const reply = await data.call('POST', '/queries', body)
        expect(reply.status, reply.text).toBe(201)
        return reply
      }
      const at = (name: string, query = '') => `/api/queries/${data.appId}/${name}/data${query}`
      const ask = (name: string, headers: Record<string, string> = {}, query = '') =>
        service().request('GET', at(name, query), { headers })

      test('over private data is for keys of the application; what is for keys its owner may publish', async () => {
        const made = await define({ name: 'inner', source_collection: 'closed' })
        expect(made.body.public).toBe(false)
        expect(await ask('inner')).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
        expect((await ask('inner', other.headers)).status).toBe(401)
        expect((await ask('inner', service().operator)).status).toBe(401)
        expect((await ask('inner', data.headers)).status).toBe(200)
        const { body } = await data.call('POST', '/keys', { permissions: ['Write'] })
        expect((await ask('inner', { 'x-app-key': body.key })).status).toBe(403)
        const outer = { name: 'outer', base_query: { select: ['id'] }, public: true }
        const refused = await data.call('POST', '/queries', {
          ...outer,
          source_collection: 'closed',
        })
        expect(refused).toMatchObject({ status: 400, body: { details: { field: '/public' } } })
        await data.create({ name: 'keyed', access_policy: 'key' })
        await data.store('keyed', [{ id: 'a' }, { id: 'b' }])
        await define({ ...outer, source_collection: 'keyed' })
        expect((await ask('outer')).body.data).toEqual([{ id: 'a' }, { id: 'b' }])
      })

      test('of which nothing says that it is public is closed with the collection that it reads', async () => {
        await data.create({ name: 'later', access_policy: 'public' })
        await define({ name: 'follows', source_collection: 'later' })
        expect((await ask('follows')).status).toBe(200)
        await data.call('PUT', '/collections/later', { access_policy: 'private' })
        expect((await ask('follows')).status).toBe(401)
      })

      test('gives fields that are not offered for ad hoc questions, as its owner published it', async () => {
        await define({
          name: 'published',
          source_collection: 'part',
          base_query: { select: ['secret'] },
        })
        expect((await ask('published')).body.data[0]).toEqual({ secret: 'xyzzy' })
        await other.create({ name: 'own' })
        const foreign = {
          name: 'foreign',
          source_collection: `${data.appId}::part`,
          base_query: { select: ['secret'] },
        }
        expect(await other.call('POST', '/queries', foreign)).toMatchObject({
          status: 403,
          body: { code: 'FIELD_NOT_OFFERED' },
        })
        const hidden = { name: 'foreign', source_collection: `${data.appId}::closed` }
        expect((await other.call('POST', '/queries', hidden)).status).toBe(404)
      })

      test('shows its text to keys of the application only, and no list shows outsiders one that is not public', async () => {
        const path = `/api/apps/${data.appId}/queries`
        const sql = `SELECT id FROM "${data.appId}"::open WHERE secret = :word`
        await define({ name: 'worded', sql, parameters: [{ name: 'word' }] })
        expect((await data.call('GET', '/queries/worded')).body.sql).toBe(sql)
        for (const headers of [{}, other.headers]) {
          const one = await service().request('GET', `${path}/worded`, { headers })
          expect(one.body).toMatchObject({
            name: 'worded',
            parameters: [{ name: 'word', type: 'string', required: true }],
          })
          expect(one.text).not.toContain('secret')
          const all = await service().request('GET', path, { headers })
          expect(all.text).not.toContain('"inner"')
          expect((await service().request('GET', `${path}/inner`, { headers })).status).toBe(401)
        }
        const own = await data.call('GET', '/queries')
        expect(own.body.queries.map(({ name }: { name: string }) => name)).toContain('inner')
      })

      test('answers 429 with Retry-After past its rate, to each caller by himself, and never to its own keys', async () => {
        await define({
          name: 'slow',
          source_collection: 'open',
          rate_limit: { requests: 2, window_seconds: 600 },
        })
        for (const status of [200, 200, 429]) expect((await ask('slow')).status).toBe(status)
        const refused = await ask('slow')
        expect(refused.body).toMatchObject({ code: 'RATE_LIMITED', details: { limit: 'query' } })
        const wait = Number(refused.headers.get('retry-after'))
        expect(wait).toBeGreaterThan(200)
        expect(wait).toBeLessThanOrEqual(300)
        for (const status of [200, 200, 429])
          expect((await ask('slow', other.headers)).status).toBe(status)
        for (let count = 0; count < 5; count++)
          expect((await ask('slow', data.headers)).status).toBe(200)
        service().world.advance(wait * 1000)
        expect((await ask('slow')).status).toBe(200)
        expect((await ask('slow')).status).toBe(429)
      })

      test('bounds each version by its own rate, which a new version leaves as it was', async () => {
        const version = (requests: number) =>
          define({
            name: 'paced',
            source_collection: 'open',
            rate_limit: { requests, window_seconds: 600 },
          })
        await version(2)
        await version(1)
        for (const status of [200, 429]) expect((await ask('paced')).status).toBe(status)
        for (const status of [200, 200, 429])
          expect((await ask('paced', {}, '?version=1')).status).toBe(status)
        const described = await service().request(
          'GET',
          `/api/apps/${data.appId}/queries/paced?version=1`,
        )
        expect(described.body.rate_limit).toEqual({ requests: 2, window_seconds: 600 })
      })

      test('answers in the format that a client accepts; JSON where it names none', async () => {
        await define({ name: 'formats', source_collection: 'open', base_query: { select: ['id'] } })
        const readType = async (accept: string, query = '') =>
          (await ask('formats', { accept }, query)).headers.get('content-type')?.split(';')[0]
        expect(await readType('*/*')).toBe('application/json')
        expect(await readType('text/html')).toBe('application/json')
        expect(await readType('text/csv')).toBe('text/csv')
        expect(await readType('application/json;q=0.5, text/csv')).toBe('text/csv')
        expect(await readType('application/x-ndjson, application/json;q=0.9')).toBe(
          'application/x-ndjson',
        )
        expect(await readType('text/csv', '?format=json')).toBe('application/json')
        expect((await ask('formats', {}, '?format=xml')).status).toBe(400)
      })

      test('gives CSV that a program reads back and a spreadsheet does not run', async () => {
        await define({ name: 'whole', source_collection: 'open' })
        const { text } = await ask('whole', {}, '?format=csv')
        expect(text).toBe(
          [
            `id,secret,'=name,"two\nlines",big,list`,
            `a,xyzzy,'=1+2,"say ""so"", then\r\ngo",,`,
            'b,,,,12345678901234567000,"[1,""2""]"',
            '',
          ].join('\r\n'),
        )
        const lines = (await ask('whole', {}, '?format=ndjson')).text.split('\n')
        expect(lines).toHaveLength(3)
        expect(lines.slice(0, 2).map((line) => JSON.parse(line).id)).toEqual(['a', 'b'])
      })

      test('is asked under every prefix', async () => {
        await define({ name: 'paths', source_collection: 'open', base_query: { select: ['id'] } })
        const { appId } = data
        for (const path of [
          `/api/queries/${appId}/paths/data`,
          `/queries/${appId}/paths/data`,
          `/api/apps/${appId}/queries/paths/data`,
          `/apps/${appId}/queries/paths/data`,
        ])
          expect((await service().request('GET', path)).body.count, path).toBe(2)
      })

      test('has a page of its own, in which what its owner wrote is text, and which loads nothing', async () => {
        await define({
          name: 'page',
          description: '<script>alert(1)</script>',
          sql: `SELECT id FROM "${data.appId}"::open WHERE id = :id`,
          parameters: [{ name: 'id', description: '<img src=x onerror=alert(2)>' }],
          price: { per_access: '12' },
          example_response: { note: '</code></pre><script>alert(3)</script>' },
        })
        const page = await service().request('GET', `/docs/queries/${data.appId}/page`)
        expect(page.status).toBe(200)
        expect(page.headers.get('content-type')).toContain('text/html')
        expect(page.headers.get('content-security-policy')).toContain("default-src 'none'")
        expect(page.text).not.toMatch(/<script|<img/)
        expect(page.text).toContain('&lt;script&gt;alert(1)')
        expect(page.text).toContain('<code>12</code> atomic units for each request')
        expect(page.text).toContain(`/api/queries/${data.appId}/page/data?id=value`)
        expect(page.text.match(/(?:src|href)="(?!\/api)[^"]*"/g)).toBeNull()
        expect((await service().request('GET', `/docs/queries/${data.appId}/inner`)).status).toBe(
          401,
        )
      })

      test('is an operation of a valid OpenAPI 3.1 document, in which those that are not public are missing', async () => {
        await define({
          name: 'described',
          source_collection: 'open',
          parameters: [
            { name: 'id', field_path: 'id', type: 'list', maxItems: 3, required: false },
            {
              name: 'secret',
              field_path: 'secret',
              type: 'enum',
              values: ['a', 'b'],
              default: 'a',
            },
            { name: 'n', field_path: 'n.$gte', type: 'integer', min: 1, max: 5, required: false },
          ],
        })
        const { body } = await service().request('GET', `/api/queries/${data.appId}/openapi.json`)
        const result = await new Validator().validate(structuredClone(body))
        expect(result.errors).toBeUndefined()
        const operation = body.paths[`/api/queries/${data.appId}/described/data`].get
        expect(operation.parameters.slice(0, 3)).toEqual([
          expect.objectContaining({ name: 'id', in: 'query', required: false }),
          expect.objectContaining({
            name: 'secret',
            schema: expect.objectContaining({ enum: ['a', 'b'], default: 'a' }),
          }),
          expect.objectContaining({
            name: 'n',
            schema: { type: 'integer', minimum: 1, maximum: 5 },
          }),
        ])
        expect(body.paths[`/api/queries/${data.appId}/inner/data`]).toBeUndefined()
      })
    },
    { config: { networks: [idleNetwork] } },
  ))

test('a data set that others may not look into is not what they are answered by, whoever has asked before them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-query-sets-'))
  const file = join(folder, 'known.txt')
  writeFileSync(file, 'public\n')
  const service = await startTestService({
    config: { dataSets: [{ name: 'known', kind: 'values', file }] },
  })
  try {
    const [owner, seller] = [await createData(service), await createData(service)]
    await owner.publish('visits', [
      { id: 'a', who: 'public' },
      { id: 'b', who: 'secret' },
    ])
    const own = { name: 'known', kind: 'values', entries: ['secret'] }
    expect((await owner.call('POST', '/datasets', own)).status).toBe(201)
    const made = await seller.call('POST', '/queries', {
      name: 'q',
      source_collection: `${owner.appId}::visits`,
      base_query: { find: { who: { inDataset: 'known' } }, select: ['id'] },
    })
    expect(made.status, made.text).toBe(201)
    const path = `/api/queries/${seller.appId}/q/data`
    for (const [headers, id] of [
      [owner.headers, 'b'],
      [{}, 'a'],
      [owner.headers, 'b'],
      [seller.headers, 'a'],
    ] as const)
      expect((await service.request('GET', path, { headers })).body.data).toEqual([{ id }])
  } finally {
    await service.close()
    rmSync(folder, { recursive: true })
  }
})
