import { describe, expect, test } from 'vitest'
import { sql } from '../../packages/server/src/database/sql.ts'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

describe('answers to requests with an Idempotency-Key whose records are gone', () =>
  withService((service) => {
    const store = (app: Data, key: string) =>
      service().request('POST', '/store?wait=true', {
        headers: { ...app.headers, 'idempotency-key': key },
        body: { root: `${app.appId}::notes`, data: [{ id: 'of-ann', person: 'ann' }] },
      })
    const countKept = async (app: Data) => {
      const rows = await service().database.query(sql`
        SELECT id FROM operations.named_request WHERE app = ${app.appId} AND answer <> ''`)
      return rows.length
    }

    const removals = [
      { by: 'an erasure', call: ['POST', '/erase', { field: 'person', value: 'ann' }] },
      { by: 'the deletion of the collection', call: ['DELETE', ''] },
    ] as const
    test.each(removals)('$by drops them, and no request is carried out again', async ({ call }) => {
      const [method, part, body] = call
      const [app, other] = [await createData(service()), await createData(service())]
      for (const one of [app, other]) {
        const first = await store(one, 'k')
        expect(first.status, first.text).toBe(200)
        expect((await store(one, 'k')).text).toBe(first.text)
      }
      const operator = { ...service().operator, 'idempotency-key': `${app.appId}-k` }
      const renamed = { headers: operator, body: { description: 'of ann' } }
      await service().request('PATCH', `/api/apps/${app.appId}`, renamed)
      expect(await countKept(app)).toBe(2)
      const gone = await app.call(method, `/collections/notes${part}`, body)
      expect(gone.status, gone.text).toBe(200)
      expect(await countKept(app)).toBe(0)
      const size = async () => (await app.call('GET', '/chain/checkpoint')).body.tree_size
      const before = await size()
      expect(await store(app, 'k')).toMatchObject({ status: 410, body: { code: 'ANSWER_LOST' } })
      expect(await size()).toBe(before)
      expect((await store(other, 'k')).headers.get('idempotent-replayed')).toBe('true')
    })
  }))
