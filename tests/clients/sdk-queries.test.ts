import {
  ConditionBuilder,
  createHttpClient,
  LogicalOperator,
  OnChainDB,
  QueryBuilder,
  SelectionBuilder,
} from '@onchaindb/sdk'
import { beforeAll, describe, expect, test } from 'vitest'
import { withService } from '../support/per-engine.ts'
import { connect, connectTo, type Sdk, silenceConsole } from './sdk.ts'

const hosts = [
  { id: 'a', name: 'Anna', age: 30, on: true, ip: '10.0.0.1', city: { name: 'Wien', zip: '1010' } },
  { id: 'b', name: 'Bert', age: 40, on: false, ip: '8.8.8.8', city: { name: 'Graz', zip: '8010' } },
  {
    id: 'c',
    name: 'Cora',
    age: 50,
    on: true,
    ip: '192.168.1.9',
    city: { name: 'Wien' },
    note: null,
  },
]

type Query = QueryBuilder
type Found = { readonly records: readonly unknown[] }

const listIds = ({ records }: Found) => records.map((record) => Reflect.get(Object(record), 'id'))

/** Every operator of the builder, and the records that it finds. */
const operators: readonly (readonly [string, (query: Query) => Query, readonly string[]])[] = [
  ['equals', (query) => query.whereField('name').equals('Anna'), ['a']],
  ['equals on a nested field', (query) => query.whereField('city.name').equals('Wien'), ['a', 'c']],
  ['notEquals', (query) => query.whereField('name').notEquals('Anna'), ['b', 'c']],
  ['greaterThan', (query) => query.whereField('age').greaterThan(40), ['c']],
  ['greaterThanOrEqual', (query) => query.whereField('age').greaterThanOrEqual(40), ['b', 'c']],
  ['lessThan', (query) => query.whereField('age').lessThan(40), ['a']],
  ['lessThanOrEqual', (query) => query.whereField('age').lessThanOrEqual(40), ['a', 'b']],
  ['between', (query) => query.whereField('age').between(30, 40), ['a', 'b']],
  ['in', (query) => query.whereField('name').in(['Anna', 'Cora']), ['a', 'c']],
  ['notIn', (query) => query.whereField('name').notIn(['Anna', 'Cora']), ['b']],
  ['contains', (query) => query.whereField('name').contains('er'), ['b']],
  ['startsWith', (query) => query.whereField('name').startsWith('C'), ['c']],
  ['endsWith', (query) => query.whereField('name').endsWith('a'), ['a', 'c']],
  ['regExpMatches', (query) => query.whereField('name').regExpMatches('^[AB]'), ['a', 'b']],
  [
    'includesCaseInsensitive',
    (query) => query.whereField('name').includesCaseInsensitive('ER'),
    ['b'],
  ],
  [
    'startsWithCaseInsensitive',
    (query) => query.whereField('name').startsWithCaseInsensitive('c'),
    ['c'],
  ],
  [
    'endsWithCaseInsensitive',
    (query) => query.whereField('name').endsWithCaseInsensitive('A'),
    ['a', 'c'],
  ],
  ['exists', (query) => query.whereField('city.zip').exists(), ['a', 'b']],
  ['notExists', (query) => query.whereField('city.zip').notExists(), ['c']],
  ['isNotNull', (query) => query.whereField('city.zip').isNotNull(), ['a', 'b']],
  ['isTrue', (query) => query.whereField('on').isTrue(), ['a', 'c']],
  ['isFalse', (query) => query.whereField('on').isFalse(), ['b']],
  ['isLocalIp', (query) => query.whereField('ip').isLocalIp(), ['a', 'c']],
  ['isExternalIp', (query) => query.whereField('ip').isExternalIp(), ['b']],
  ['cidr', (query) => query.whereField('ip').cidr('10.0.0.0/8'), ['a']],
  ['b64', (query) => query.whereField('name').b64('QmVydA=='), ['b']],
  [
    'conditions joined by and, or, not',
    (query) =>
      query.find((builder) =>
        LogicalOperator.And([
          builder.orGroup((any) => [
            LogicalOperator.Condition(any.field('age').greaterThan(45)),
            LogicalOperator.Condition(any.field('city.name').equals('Graz')),
          ]),
          builder.notGroup((none) => [
            LogicalOperator.Condition(none.field('name').equals('Cora')),
          ]),
        ]),
      ),
    ['b'],
  ],
  [
    'the nested builder, whose between has another name',
    (query) =>
      query.find((builder) =>
        builder.nested('city', (city) =>
          LogicalOperator.Condition(city.field('zip').between('1000', '2000')),
        ),
      ),
    ['a'],
  ],
  [
    'the condition builder by hand',
    (query) =>
      query.find(() =>
        ConditionBuilder.new()
          .addCondition(LogicalOperator.Condition(new ConditionBuilder().field('on').isTrue()))
          .addCondition(LogicalOperator.Condition(new ConditionBuilder().field('age').lessThan(50)))
          .buildSingle(),
      ),
    ['a'],
  ],
]

describe('the unmodified public SDK: queries', () =>
  withService((service) => {
    silenceConsole()
    let sdk: Sdk
    beforeAll(async () => {
      sdk = await connect(service())
      await sdk.client.storeAndConfirm({ collection: 'hosts', data: hosts })
      await service().request('PUT', `/api/apps/${sdk.app.appId}/collections/hosts`, {
        headers: { 'x-app-key': sdk.app.key },
        body: { access_policy: 'public' },
      })
    })
    const query = () => sdk.client.queryBuilder().collection('hosts')

    test.each(operators)(
      'a query with %s finds the records that match',
      async (_name, conditions, expected) => {
        expect(listIds(await conditions(query()).selectAll().execute())).toEqual(expected)
      },
    )

    test('isNull finds the null that is stored', async () => {
      expect(listIds(await query().whereField('note').isNull().execute())).toContain('c')
    })

    test('inCountry and inDataset look into the data sets of the application', async () => {
      const inCountry = () => query().whereField('ip').inCountry('AT')
      const inDataset = () => query().whereField('name').inDataset('people')
      expect(await inCountry().execute()).toMatchObject({ code: 'DATA_SET_NOT_FOUND' })
      expect(await inDataset().execute()).toMatchObject({ code: 'DATA_SET_NOT_FOUND' })
      for (const body of [
        { name: 'people', kind: 'values', entries: ['Anna', 'nobody'] },
        { name: 'geo', kind: 'ip_country', entries: ['10.0.0.0/8,AT', '8.8.8.0/24,US'] },
      ])
        expect(
          (
            await service().request('POST', `/api/apps/${sdk.app.appId}/datasets`, {
              body,
              headers: sdk.app.headers,
            })
          ).status,
        ).toBe(201)
      const given = async (one: Query) =>
        (await one.selectAll().execute()).records.map(({ ip, name }) => ({ ip, name }))
      for (const { ip } of await given(inCountry())) expect(ip).toMatch(/^10\./)
      expect((await given(inCountry())).length).toBeGreaterThan(0)
      expect((await given(inDataset())).map(({ name }) => name)).toContain('Anna')
    })

    const anna = { id: 'Anna', born: 1990 }
    const logs = [
      { id: 'l1', host: 'a', line: 'up' },
      { id: 'l2', host: 'b', line: 'up' },
      { id: 'l3', host: 'a', line: 'down' },
    ]

    test.each<[string, (one: Query) => Query, Readonly<Record<string, readonly unknown[]>>]>([
      [
        'joinOne',
        (one) => one.joinOne('owner', 'people').onField('id').equals('$data.name').build(),
        { owner: [anna, null, null] },
      ],
      [
        'joinMany',
        (one) => one.joinMany('logs', 'logs').onField('host').equals('$data.id').build(),
        { logs: [[logs[0], logs[2]], [logs[1]], []] },
      ],
      [
        'joinWith',
        (one) => one.joinWith('logs', 'logs').selectAll().build(),
        { logs: [logs, logs, logs] },
      ],
      [
        'serverJoin',
        (one) => one.serverJoin('logs', 'logs', { find: {}, select: {} }),
        { logs: [logs, logs, logs] },
      ],
    ])('%s gives the joined records inside each record', async (_name, join, expected) => {
      await sdk.client.storeAndConfirm({ collection: 'people', data: [anna] })
      await sdk.client.storeAndConfirm({ collection: 'logs', data: logs })
      const { records } = await join(query()).execute()
      expect(records.map((record) => record.id)).toEqual(['a', 'b', 'c'])
      for (const [field, values] of Object.entries(expected))
        expect(records.map((record) => record[field])).toEqual(values)
    })

    test('the join that the SDK makes itself, out of two queries, finds the joined records', async () => {
      await sdk.client.storeAndConfirm({ collection: 'cities', data: [{ id: 'w', at: 'Anna' }] })
      const joined = await query().join('cities', 'at', 'name', 'home').execute()
      expect(joined.records.map((record) => record.home)).toEqual([
        { id: 'w', at: 'Anna' },
        null,
        null,
      ])
    })

    test('selections give fields, nested fields and everything but excluded fields', async () => {
      const first = async (one: Query) => (await one.limit(1).execute()).records[0]
      expect(await first(query().selectFields(['name', 'age']))).toEqual({ name: 'Anna', age: 30 })
      expect(
        await first(
          query().select((one) => one.field('id').nested('city', (city) => city.field('zip'))),
        ),
      ).toEqual({
        id: 'a',
        city: { zip: '1010' },
      })
      const { city: _, ip: __, ...rest } = hosts[0] ?? {}
      expect(
        await first(query().select((one) => one.exclude('city').excludeFields(['ip']))),
      ).toEqual(rest)
      expect(SelectionBuilder.all()).toEqual({})
    })

    test('queries have order, pages and a total', async () => {
      const page = await query().selectFields(['name']).orderBy('name').limit(1).offset(1).execute()
      expect(page).toMatchObject({ records: [{ name: 'Bert' }], total: 3, page: 2, limit: 1 })
      const clone = query().orderBy('age').limit(2).clone()
      expect(clone.isValid()).toBe(false)
      expect(listIds(await clone.execute())).toEqual(['a', 'b'])
      expect(await query().executeUnique()).toMatchObject({ id: expect.any(String) })
    })

    test('aggregates are over every record, because no limit means all', async () => {
      const { client } = await connect(service())
      const data = Array.from({ length: 1200 }, (_, at) => ({
        id: `r${at}`,
        n: at,
        kind: `k${at % 3}`,
      }))
      await client.storeAndConfirm({ collection: 'rows', data })
      const rows = () => client.queryBuilder().collection('rows')
      expect(await rows().count()).toBe(1200)
      expect(await rows().sumBy('n')).toBe((1199 * 1200) / 2)
      expect(await rows().avgBy('n')).toBe(1199 / 2)
      expect(await rows().maxBy('n')).toBe(1199)
      expect(await rows().minBy('n')).toBe(0)
      expect(await rows().distinctBy('kind')).toEqual(['k0', 'k1', 'k2'])
      expect(await rows().countDistinct('kind')).toBe(3)
      expect(await rows().groupBy('kind').count()).toEqual({ k0: 400, k1: 400, k2: 400 })
      expect(await rows().groupBy('kind').maxBy('n')).toEqual({ k0: 1197, k1: 1198, k2: 1199 })
      expect(await rows().groupBy('kind').minBy('n')).toEqual({ k0: 0, k1: 1, k2: 2 })
      expect(await rows().groupBy('kind').sumBy('n')).toMatchObject({ k0: 239_400 })
      expect(await rows().groupBy('kind').avgBy('n')).toMatchObject({ k0: 598.5 })
      expect(await query().groupBy('city.name').count()).toEqual({ Wien: 2, Graz: 1 })
    })

    test('history has every version, a query without it only the latest', async () => {
      const { client } = await connect(service())
      const store = (n: number) =>
        client.storeAndConfirm({ collection: 'notes', data: [{ id: 'a', n }] })
      await store(1)
      await store(2)
      const notes = () => client.queryBuilder().collection('notes')
      expect((await notes().execute()).records).toEqual([{ id: 'a', n: 2 }])
      expect((await notes().includeHistory().execute()).records).toHaveLength(2)
    })

    test('client.query asks for a collection without a name, and learns that there is none', async () => {
      const answer = await sdk.client.query({ collection: 'hosts', filters: { age: 30 }, limit: 1 })
      expect(answer).toMatchObject({ code: 'COLLECTION_NOT_FOUND', error: expect.any(String) })
      expect(answer).not.toHaveProperty('records')
    })

    test('public data needs no key', async () => {
      const { client, seen } = connectTo(service(), { appId: sdk.app.appId })
      expect(await client.countDocuments('hosts')).toBe(3)
      await expect(client.store({ collection: 'hosts', data: [{}] })).rejects.toThrow()
      expect(seen.at(-1)).toMatchObject({ status: 401, body: { code: 'UNAUTHORIZED' } })
    })

    test('queryBlobMetadata asks for the rows of the collection', async () => {
      expect(await sdk.client.queryBlobMetadata('hosts', { name: 'Bert' })).toMatchObject([
        { id: 'b' },
      ])
    })

    test.each(['fetch', 'node', 'axios'] as const)(
      'the static class over %s reads health, information and queries as they are',
      async (type) => {
        const axiosInstance: unknown = Reflect.get(sdk.client, 'http')
        const http = createHttpClient({ type, ...(type === 'axios' && { axiosInstance }) })
        OnChainDB.reset()
        expect(OnChainDB.isConfigured()).toBe(false)
        OnChainDB.configure(http, service().url, sdk.app.key)
        expect(await OnChainDB.healthCheck()).toBe(true)
        expect(await OnChainDB.serverInfo()).toMatchObject({ data: { name: 'tollbase' } })
        const asked = { root: `${sdk.app.appId}::hosts`, find: { age: { is: 30 } }, select: {} }
        const fieldMap = { age: 'years' }
        expect(
          await OnChainDB.rawQuery(JSON.stringify(asked), undefined, undefined, fieldMap),
        ).toMatchObject({ data: { records: [{ id: 'a' }] } })
        expect(await OnChainDB.queryFromJson(asked)).toMatchObject({ data: { total: 1 } })
        expect(OnChainDB.getHttpClient()).toBe(http)
        expect(OnChainDB.getServerUrl()).toBe(service().url)
      },
    )

    test('builders of the static class name no application, and are refused by name', async () => {
      OnChainDB.configure(createHttpClient({ type: 'fetch' }), service().url)
      const http = createHttpClient({ type: 'fetch' })
      const builders = [
        OnChainDB.query(),
        OnChainDB.queryWith(http, service().url),
        OnChainDB.select((one) => one.field('id')),
      ]
      for (const builder of builders) {
        await expect(builder.collection('hosts').execute()).rejects.toThrow(
          /HTTP 404.*APPLICATION_NOT_FOUND/,
        )
      }
      const named = QueryBuilder.new(http, service().url, sdk.app.appId).collection('hosts')
      expect(await named.count()).toBe(3)
    })

    test('the static class makes indexes, plain and unique', async () => {
      const { app } = await connect(service())
      OnChainDB.configure(createHttpClient({ type: 'fetch' }), service().url, app.key)
      expect(await OnChainDB.createIndex(app.appId, 'people', 'age')).toMatchObject({
        data: { field_name: 'age', status: 'active' },
      })
      expect(await OnChainDB.createUniqueIndex(app.appId, 'people', 'email')).toMatchObject({
        data: { field_name: 'email', unique_constraint: true },
      })
    })
  }))
