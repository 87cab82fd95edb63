import { limits } from '@tollbase/contract/limits'
import { beforeAll, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'

describe('the definition of a query', () =>
  withService((service) => {
    let data: Data
    let root: string
    beforeAll(async () => {
      data = await createData(service())
      await data.create({
        name: 'c',
        access_policy: 'public',
        schema_definition: { fields: { n: { type: 'number' }, at: { type: 'date' } } },
      })
      await data.store('c', [
        { id: 'a', n: 1, g: 'x', at: '2026-01-01T00:00:00Z' },
        { id: 'b', n: 2, g: 'x', at: '2026-02-01T00:00:00Z' },
        { id: 'd', n: 3, g: 'y', at: '2026-03-01T00:00:00Z' },
      ])
      root = `"${data.appId}"::c`
    })
    const define = (body: object) => data.call('POST', '/queries', body)
    const ask = (name: string, query = '') =>
      service().request('GET', `/api/queries/${data.appId}/${name}/data${query}`)
    const base = (more: object = {}) => ({ name: 'q', source_collection: 'c', ...more })
    const parameter = (more: object) =>
      base({ parameters: [{ name: 'v', field_path: 'g', ...more }] })

    test.each<[string, (at: { root: string }) => object, string]>([
      ['neither form', () => ({ name: 'q' }), ''],
      [
        'both forms',
        ({ root }) => ({ name: 'q', sql: `SELECT id FROM ${root}`, source_collection: 'c' }),
        '',
      ],
      ['SQL that writes', () => ({ name: 'q', sql: 'DELETE FROM x::c' }), '/sql'],
      ['SQL with a mistake', ({ root }) => ({ name: 'q', sql: `SELEC id FROM ${root}` }), '/sql'],
      ['SQL over nothing', () => ({ name: 'q', sql: 'SELECT 1 AS one' }), ''],
      [
        'a placeholder that is not declared',
        ({ root }) => ({ name: 'q', sql: `SELECT id FROM ${root} WHERE n = :n` }),
        '/sql',
      ],
      [
        'a parameter that the text does not use',
        ({ root }) => ({ name: 'q', sql: `SELECT id FROM ${root}`, parameters: [{ name: 'n' }] }),
        '/sql',
      ],
      [
        'a pattern that a caller would write',
        ({ root }) => ({
          name: 'q',
          sql: `SELECT id FROM ${root} WHERE g LIKE :n`,
          parameters: [{ name: 'n' }],
        }),
        '/sql',
      ],
      [
        'a list outside of IN',
        ({ root }) => ({
          name: 'q',
          sql: `SELECT id FROM ${root} WHERE g = :n`,
          parameters: [{ name: 'n', type: 'list' }],
        }),
        '/sql',
      ],
      [
        'nothing to take the place of a missing value in SQL',
        ({ root }) => ({
          name: 'q',
          sql: `SELECT id FROM ${root} WHERE g = :n`,
          parameters: [{ name: 'n', required: false }],
        }),
        '/parameters/0/default',
      ],
      [
        'a field_path in SQL',
        ({ root }) => ({
          name: 'q',
          sql: `SELECT id FROM ${root} WHERE g = :n`,
          parameters: [{ name: 'n', field_path: 'g' }],
        }),
        '/parameters/0/field_path',
      ],
      [
        'no field_path in a base query',
        () => base({ parameters: [{ name: 'v' }] }),
        '/parameters/0/field_path',
      ],
      [
        'an operator that takes a pattern',
        () => parameter({ field_path: 'g.$regex' }),
        '/parameters/0/field_path',
      ],
      [
        'an operator that there is not',
        () => parameter({ field_path: 'g.$where' }),
        '/parameters/0/field_path',
      ],
      [
        'an operator without a field',
        () => parameter({ field_path: '$gte' }),
        '/parameters/0/field_path',
      ],
      [
        'a default of another type',
        () => parameter({ type: 'integer', default: 'x' }),
        '/parameters/0/default',
      ],
      [
        'a default out of its bounds',
        () => parameter({ type: 'integer', max: 3, default: 4 }),
        '/parameters/0/default',
      ],
      ['an empty default', () => parameter({ default: '' }), '/parameters/0/default'],
      ['a default that is null', () => parameter({ default: null }), '/parameters/0/default'],
      [
        'a default that is an object',
        () => parameter({ default: { $gte: '' } }),
        '/parameters/0/default',
      ],
      [
        'an empty list as a default',
        () => parameter({ type: 'list', default: [] }),
        '/parameters/0/default',
      ],
      ['min above max', () => parameter({ type: 'number', min: 3, max: 2 }), '/parameters/0/min'],
      ['bounds of a string', () => parameter({ min: 3 }), '/parameters/0/min'],
      ['an enum without values', () => parameter({ type: 'enum' }), '/parameters/0/values'],
      [
        'values of two types',
        () => parameter({ type: 'enum', values: ['a', 1] }),
        '/parameters/0/values',
      ],
      [
        'a pattern that could take for ever',
        () => parameter({ pattern: '(a+)+$' }),
        '/parameters/0/pattern',
      ],
      ['a sort that is open', () => parameter({ field_path: 'sort' }), '/parameters/0/type'],
      [
        'a limit that is no integer',
        () => parameter({ field_path: 'limit', type: 'string' }),
        '/parameters/0/type',
      ],
      [
        'a long prefix',
        () => parameter({ field_path: 'g.$startsWith', maxLength: 500 }),
        '/parameters/0/maxLength',
      ],
      ['a name that every query takes', () => parameter({ name: 'version' }), '/parameters/0/name'],
      [
        'one name twice',
        () =>
          base({
            parameters: [
              { name: 'v', field_path: 'g' },
              { name: 'v', field_path: 'n' },
            ],
          }),
        '/parameters/1',
      ],
      ['an unknown member of a parameter', () => parameter({ regex: 'x' }), '/parameters/0/regex'],
      [
        'two fields to sort by',
        () => base({ base_query: { sort: ['g', 'n'] } }),
        '/base_query/sort',
      ],
      [
        'an operator of a find that there is not',
        () => base({ base_query: { find: { g: { $where: 1 } } } }),
        '/base_query/find/g/$where',
      ],
      ['a group size without groups', () => base({ min_group_size: 3 }), '/min_group_size'],
      [
        'a group size of a query inside',
        ({ root }) => ({
          name: 'q',
          min_group_size: 3,
          sql: `SELECT count(*) AS n FROM (SELECT g FROM ${root} GROUP BY g) AS x`,
        }),
        '/min_group_size',
      ],
      [
        'a price above all sense',
        () => base({ price: { per_row: '9999999999999999' } }),
        '/price/per_row',
      ],
    ])('with %s is refused with 400 that names the place', async (_, body, field) => {
      const reply = await define(body({ root }))
      expect(reply.status, reply.text).toBe(400)
      if (field !== '') expect(reply.body.details.field).toBe(field)
    })

    test('has bounds: parameters, their texts and lists, bytes, and versions of one name', async () => {
      const some = (count: number) =>
        Array.from({ length: count }, (_, at) => ({
          name: `p${at}`,
          field_path: `f${at}`,
          required: false,
        }))
      const of = (more: object) =>
        define(base({ name: 'bounds', ...more })).then(({ status }) => status)
      expect(await of({ parameters: some(limits.queryParametersMax) })).toBe(201)
      expect(await of({ parameters: some(limits.queryParametersMax + 1) })).toBe(400)
      const text = (maxLength: number) => ({
        parameters: [{ name: 'v', field_path: 'g', maxLength }],
      })
      expect(await of(text(limits.queryTextCharsMax))).toBe(201)
      expect(await of(text(limits.queryTextCharsMax + 1))).toBe(400)
      const list = (maxItems: number) => ({
        parameters: [{ name: 'v', field_path: 'g', type: 'list', maxItems }],
      })
      expect(await of(list(limits.queryListMax))).toBe(201)
      expect(await of(list(limits.queryListMax + 1))).toBe(400)
      const large = (bytes: number) => ({ example_response: 'x'.repeat(bytes) })
      const frame = JSON.stringify(base({ name: 'bounds', ...large(0) })).length
      expect(await of(large(limits.queryDefinitionBytesMax - frame))).toBe(201)
      expect(await of(large(limits.queryDefinitionBytesMax - frame + 1))).toBe(400)
      for (let version = 5; version <= limits.queryVersionsMax; version++)
        expect(await of({})).toBe(201)
      expect(await of({})).toBe(409)
    })

    test('gets the type of a parameter from its default, else from what the collection declares, else it is a string', async () => {
      const { body } = await define(
        base({
          name: 'typed',
          parameters: [
            { name: 'n', field_path: 'n.$gte', required: false },
            { name: 'at', field_path: 'at.$lt', required: false },
            { name: 'm', field_path: 'm', default: 5, required: false },
            { name: 'g', field_path: 'g', required: false },
          ],
        }),
      )
      expect(body.parameters.map(({ type }: { type: string }) => type)).toEqual([
        'number',
        'date',
        'number',
        'string',
      ])
    })

    test('makes versions: the next number, or a higher one that is asked for; old ones stay callable', async () => {
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

    test('that changes what it reads is read anew: a declared type, an index, a collection of the same name', async () => {
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

    test('holds the collections that it needs: deleting one is 409 naming it, or takes it along', async () => {
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

    test('leaves out groups of fewer records, however often a join gives them', async () => {
      await define({
        name: 'large',
        sql: `SELECT g, count(*) AS n FROM ${root} GROUP BY g ORDER BY g`,
        min_group_size: 2,
      })
      expect((await ask('large')).body.data).toEqual([{ g: 'x', n: 2 }])
      await define({
        name: 'joined',
        sql: `SELECT a.g, count(*) AS n FROM ${root} a CROSS JOIN ${root} b GROUP BY a.g ORDER BY g`,
        min_group_size: 2,
      })
      expect((await ask('joined')).body.data).toEqual([{ g: 'x', n: 6 }])
      await define(
        base({
          name: 'grouped',
          base_query: { group_by: 'g', aggregate: { n: { $count: '*' } } },
          min_group_size: 2,
        }),
      )
      expect((await ask('grouped')).body.data).toEqual([{ g: 'x', n: 2 }])
      await define({
        name: 'whole',
        sql: `SELECT sum(n) AS n FROM ${root} WHERE n >= :n`,
        min_group_size: 2,
        parameters: [{ name: 'n', type: 'number' }],
      })
      expect((await ask('whole', '?n=1')).body.data).toEqual([{ n: 6 }])
      expect((await ask('whole', '?n=3')).body.data).toEqual([])
    })

    test('reckons now() anew for each run', async () => {
      await define({ name: 'time', sql: `SELECT id, now() AS at FROM ${root} LIMIT 1` })
      const at = async () => Date.parse((await ask('time')).body.data[0].at)
      const first = await at()
      service().world.advance(3_600_000)
      expect((await at()) - first).toBeGreaterThanOrEqual(3_600_000)
    })

    test('is tried without being run: parameters as bound, plan and columns', async () => {
      await define({
        name: 'tried',
        sql: `SELECT id, n FROM ${root} WHERE n >= :n`,
        parameters: [{ name: 'n', type: 'number', default: 2 }],
      })
      const { status, body } = await data.call('POST', '/queries/tried/dry-run', {})
      expect(status).toBe(200)
      expect(body).toMatchObject({
        query: 'tried',
        version: 1,
        parameters: { n: 2 },
        columns: ['id', 'n'],
        price_cap: { amount: '0' },
      })
      expect(body.plan.estimated_cost).toBeGreaterThan(0)
      expect(
        (await data.call('POST', '/queries/tried/dry-run', { parameters: { n: 'x' } })).status,
      ).toBe(400)
      expect(
        (await data.call('POST', '/queries/tried/dry-run', { parameters: { n: { $gte: 1 } } }))
          .status,
      ).toBe(400)
    })
  }))
