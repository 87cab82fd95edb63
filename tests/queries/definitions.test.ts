import { beforeAll, describe, expect, test } from 'vitest'
import type { Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { createDeclaredData } from '../support/queries.ts'

describe('definitions of predefined queries', () =>
  withService((service) => {
    let data: Data
    let root: string
    beforeAll(async () => {
      data = await createDeclaredData(service())
      root = `"${data.appId}"::c`
    })
    const define = (body: object) => data.call('POST', '/queries', body)
    const ask = (name: string, query = '') =>
      service().request('GET', `/api/queries/${data.appId}/${name}/data${query}`)
    test('a new version has the next number or a higher one that is asked for, and older versions stay callable', async () => {
      const sql = (field: string) => ({
        name: 'versioned',
        sql: `SELECT ${field} FROM ${root} ORDER BY id LIMIT 1`,
      })
      expect((await define(sql('id'))).body).toMatchObject({ version: 1 })
      expect((await define(sql('n'))).body.version).toBe(2)
      expect((await define({ ...sql('g'), version: 7 })).body).toMatchObject({
        version: 7,
        versions: [{ version: 1 }, { version: 2 }, { version: 7 }],
      })
      expect(await define({ ...sql('g'), version: 7 })).toMatchObject({
        status: 409,
        body: { code: 'CONFLICT' },
      })
      expect((await ask('versioned')).body).toMatchObject({ version: 7, data: [{ g: 'x' }] })
      expect((await ask('versioned', '?version=1')).body).toMatchObject({
        version: 1,
        data: [{ id: 'a' }],
      })
      expect(await ask('versioned', '?version=3')).toMatchObject({
        status: 404,
        body: { code: 'QUERY_NOT_FOUND' },
      })
      expect((await data.call('DELETE', '/queries/versioned?version=7')).status).toBe(200)
      expect((await ask('versioned')).body.version).toBe(2)
      await service().restart()
      expect((await ask('versioned', '?version=1')).body.data).toEqual([{ id: 'a' }])
      expect((await data.call('DELETE', '/queries/versioned')).status).toBe(200)
      expect((await ask('versioned')).status).toBe(404)
    })

    test('a query reads a collection of the same name anew after the collection was deleted and created again', async () => {
      await data.create({ name: 'changing', access_policy: 'public' })
      await data.store('changing', [{ id: 'a', n: 1 }])
      await define({ name: 'changing', source_collection: 'changing' })
      expect((await ask('changing')).body.data).toEqual([{ id: 'a', n: 1 }])
      await data.call('DELETE', '/collections/changing', { cascade: true })
      expect((await ask('changing')).status).toBe(404)
      await data.create({ name: 'changing', access_policy: 'public' })
      await data.store('changing', [{ id: 'b', n: 2 }])
      await define({ name: 'changing', source_collection: 'changing' })
      await data.call('POST', '/collections/changing/indexes', { field_name: 'n' })
      expect((await ask('changing')).body.data).toEqual([{ id: 'b', n: 2 }])
    })

    test('a collection that a query needs is deleted only together with the query, and the refusal names the query', async () => {
      await data.create({ name: 'needed' })
      await define({ name: 'needing', source_collection: 'needed' })
      const refused = await data.call('DELETE', '/collections/needed')
      expect(refused).toMatchObject({
        status: 409,
        body: { code: 'CONFLICT', details: { queries: ['needing'] } },
      })
      expect((await data.call('DELETE', '/collections/needed', { cascade: true })).status).toBe(200)
      expect((await data.call('GET', '/queries/needing')).status).toBe(404)
    })
  }))
