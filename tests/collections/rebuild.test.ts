import { expect, test } from 'vitest'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { rebuild } from '../../packages/server/src/operator/rebuild.ts'
import { createData, makeData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

withService((service) => {
  test('a rebuild makes batches, relations, migrations, data sets, predefined queries and shard keys anew from the log as they were', async () => {
    const app = await createData(service())
    await app.store('c', [{ id: 'a', market: 'x' }, { id: 'b' }])
    await app.call('POST', '/relations', {
      parent_collection: 'people',
      parent_field: 'id',
      child_collection: 'c',
      child_field: 'person',
    })
    await app.call('POST', '/relations', {
      parent_collection: 'gone',
      parent_field: 'id',
      child_collection: 'c',
      child_field: 'of',
    })
    await app.call('PATCH', '/collections/c/sharding', {
      keys: [{ field: 'market', type: 'discrete' }],
    })
    const schema = { fields: { market: { type: 'string', default: 'none', index: true } } }
    await app.call('POST', '/collections/c/migrate', { schema })
    await app.call('POST', '/collections/gone/migrate', { schema })
    await app.call('POST', '/batch', {
      operations: [
        { operation: 'create', collection: 'people', data: { id: 'p' } },
        {
          operation: 'update',
          collection: 'c',
          data: { person: 'p' },
          conditions: { market: 'x' },
        },
        { operation: 'delete', collection: 'c', data: { id: 'b' } },
      ],
    })
    await app.call('DELETE', '/collections/gone')
    const set = { name: 's', kind: 'values', entries: ['a', 7] }
    await app.call('POST', '/datasets', { ...set, entries: ['x'] })
    await app.call('POST', '/datasets', set)
    await app.call('POST', '/datasets', { ...set, name: 'gone' })
    await app.call('POST', '/datasets', {
      name: 'geo',
      kind: 'ip_country',
      entries: ['192.0.2.0/24,DE', '2001:db8::/32,AT'],
    })
    await app.call('DELETE', '/datasets/gone')
    const query = {
      name: 'q',
      source_collection: 'c',
      parameters: [{ name: 'id', field_path: 'id' }],
    }
    for (const name of ['q', 'q', 'gone']) await app.call('POST', '/queries', { ...query, name })
    await app.call('DELETE', '/queries/q?version=1')
    await app.call('DELETE', '/queries/gone')
    const told = async () => {
      const now = makeData(service(), app)
      const paths = ['/collections', '/relations', '/datasets', '/indexes', '/queries', '/stats']
      const replies = await Promise.all(paths.map((path) => now.call('GET', path)))
      return [
        ...replies.map(({ body }) => ({ ...body, active_connections: 0 })),
        (await now.list('c')).text,
        (await now.list('c', { find: { id: { inDataset: 's' } } })).text,
      ]
    }
    const before = await told()
    await service().whileStopped(async (config) => {
      expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
      expect(await rebuild(config, () => undefined)).toMatchObject({ equal: true })
      expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
    })
    expect(await told()).toEqual(before)
  })
})
