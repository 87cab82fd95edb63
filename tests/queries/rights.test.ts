import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import { startTestService } from '../support/service.ts'

describe('rights of a predefined query', () =>
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

      test('a query over private data is for keys of the application, and the owner may publish a query over data that is for keys', async () => {
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

      test('a query that does not say whether it is public is closed together with the collection that it reads', async () => {
        await data.create({ name: 'later', access_policy: 'public' })
        await define({ name: 'follows', source_collection: 'later' })
        expect((await ask('follows')).status).toBe(200)
        await data.call('PUT', '/collections/later', { access_policy: 'private' })
        expect((await ask('follows')).status).toBe(401)
      })

      test("a query gives fields that are not offered to ad hoc requests, because its owner published them, and another application's query does not", async () => {
        const query = { source_collection: 'part', base_query: { select: ['secret'] } }
        const said = await define({ ...query, name: 'published', public: true })
        expect(said.body.public).toBe(true)
        expect((await ask('published')).body.data[0]).toEqual({ secret: 'xyzzy' })
        const priced = await define({ ...query, name: 'priced', price: { per_access: '500' } })
        expect(priced.body.public).toBe(true)
        expect((await ask('priced')).status).toBe(402)
        // Nobody has said of this one that it is for strangers.
        const unsaid = await define({ ...query, name: 'unsaid' })
        expect(unsaid.body.public).toBe(false)
        expect((await ask('unsaid')).status).toBe(401)
        expect((await ask('unsaid', data.headers)).body.data[0]).toEqual({ secret: 'xyzzy' })
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
    },
    { config: { networks: [idleNetwork] } },
  ))

test('nobody is answered by a data set that is closed to him, whoever has asked before', async () => {
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
