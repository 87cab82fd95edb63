import { idleNetwork } from '@tollbase/testing/idle-network'
import { withService } from '@tollbase/testing/per-engine'
import { createQueryCalls } from '@tollbase/testing/queries'
import { describe, expect, test } from 'vitest'

describe('getQuery', () =>
  withService(
    (service) => {
      test('only keys of the application see the text of a query; outsiders see its parameters if it is public, and nothing otherwise', async () => {
        const { data, define, defineClosed } = await createQueryCalls(service())
        const other = await service().createApp()
        await defineClosed('inner')
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
          expect((await service().request('GET', `${path}/inner`, { headers })).status).toBe(401)
        }
        expect((await data.call('GET', '/queries/inner')).status).toBe(200)
      })

      test('a query or version that is not there is 404 and named', async () => {
        const { data, define } = await createQueryCalls(service())
        await define({ name: 'one', source_collection: 'open' })
        for (const path of ['/queries/none', '/queries/one?version=2'])
          expect(await data.call('GET', path), path).toMatchObject({
            status: 404,
            body: { code: 'QUERY_NOT_FOUND' },
          })
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
