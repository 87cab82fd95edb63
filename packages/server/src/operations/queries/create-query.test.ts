import { limits } from '@tollbase/contract/limits'
import type { Data } from '@tollbase/testing/data'
import { withService } from '@tollbase/testing/per-engine'
import { createDeclaredData } from '@tollbase/testing/queries'
import { beforeAll, describe, expect, test } from 'vitest'

describe('createQuery', () =>
  withService((service) => {
    let data: Data
    let root: string
    beforeAll(async () => {
      data = await createDeclaredData(service())
      root = `"${data.appId}"::c`
    })
    const define = (body: object) => data.call('POST', '/queries', body)
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
    ])('a definition with %s is refused with 400 that names the place', async (_, body, field) => {
      const reply = await define(body({ root }))
      expect(reply.status, reply.text).toBe(400)
      if (field !== '') expect(reply.body.details.field).toBe(field)
    })

    test('a definition has bounds: parameters, their texts and lists, bytes, and versions of one name', async () => {
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

    test('a parameter has the type of its default, else the type that the collection declares, else it is a string', async () => {
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
  }))
