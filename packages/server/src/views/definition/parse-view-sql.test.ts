import { describe, expect, it } from 'vitest'
import type { Fault } from '../../base/fault.ts'
import { parseViewSql } from './parse-view-sql.ts'

async function refusal(sql: unknown): Promise<Fault> {
  return parseViewSql(sql, 'app').then(
    () => expect.unreachable('nothing was refused'),
    (error) => error,
  )
}

const definition = { select: ['id'], from: 'app::orders' }

describe('CREATE MATERIALIZED VIEW', () => {
  it.each([
    ['as it is written', 'CREATE MATERIALIZED VIEW app::v AS SELECT id FROM app::orders'],
    ['in any case', 'create Materialized view app::v as select id from app::orders;'],
    [
      'with comments',
      '/* a */ CREATE -- OR REPLACE\nMATERIALIZED /* AS */ VIEW app::v AS SELECT id FROM app::orders -- ;',
    ],
    ['with quoted names', 'CREATE MATERIALIZED VIEW "app"::"v" AS SELECT id FROM app::orders'],
    ['in brackets', 'CREATE MATERIALIZED VIEW app :: v AS (SELECT id FROM app::orders)'],
  ])('a CREATE is read %s', async (_, text) => {
    expect(await parseViewSql(text, 'app')).toEqual({
      name: 'v',
      ifNotExists: false,
      orReplace: false,
      definition,
    })
  })

  it('a CREATE keeps the case of names, and takes words that are keywords elsewhere', async () => {
    const text = 'CREATE MATERIALIZED VIEW app::Daily AS SELECT customerId, "Ü" FROM app::orders'
    expect(await parseViewSql(text, 'app')).toMatchObject({
      name: 'Daily',
      definition: { select: ['customerId', 'Ü'] },
    })
    const data = await parseViewSql(
      'CREATE MATERIALIZED VIEW app::data AS SELECT a FROM app::c',
      'app',
    )
    expect(data.name).toBe('data')
    for (const word of ['user', 'order', 'group', 'table', 'all', 'select', 'left', 'End', 'as']) {
      const { name } = await parseViewSql(
        `CREATE MATERIALIZED VIEW app::${word} AS SELECT a FROM app::c`,
        'app',
      )
      expect(name).toBe(word)
    }
  })

  it('a CREATE says IF NOT EXISTS and OR REPLACE', async () => {
    const select = 'app::v AS SELECT id FROM app::orders'
    const unless = await parseViewSql(`CREATE MATERIALIZED VIEW IF NOT EXISTS ${select}`, 'app')
    expect(unless).toMatchObject({ ifNotExists: true, orReplace: false, definition })
    const anew = await parseViewSql(`CREATE OR REPLACE MATERIALIZED VIEW ${select}`, 'app')
    expect(anew).toMatchObject({ ifNotExists: false, orReplace: true, definition })
  })

  it('a CREATE is not misled by the text of strings', async () => {
    const text =
      "CREATE MATERIALIZED VIEW app::v AS SELECT ' OR REPLACE WITH NO DATA' AS x FROM app::c"
    expect(await parseViewSql(text, 'app')).toMatchObject({
      orReplace: false,
      definition: { select: [{ x: { $literal: ' OR REPLACE WITH NO DATA' } }] },
    })
  })

  const create = 'CREATE MATERIALIZED VIEW app::v'
  it.each<readonly [unknown, string, number]>([
    ['', 'is empty', 0],
    [7, 'must be a string', 0],
    ['SELECT id FROM app::orders', 'a statement that is no CREATE', 1],
    ['CREATE VIEW app::v AS SELECT 1', 'a statement that is no CREATE', 8],
    ['CREATE TABLE app::v AS SELECT 1', 'a statement that is no CREATE', 8],
    ['CREATE UNLOGGED MATERIALIZED VIEW app::v AS SELECT 1', 'UNLOGGED', 8],
    ['CREATE TEMP MATERIALIZED VIEW app::v AS SELECT 1', 'a statement that is no CREATE', 8],
    ['CREATE MATERIALIZED VIEW v AS SELECT 1', 'no name of the view here', 26],
    ['CREATE MATERIALIZED VIEW app.v AS SELECT 1', 'no name of the view here', 26],
    ['CREATE MATERIALIZED VIEW other::v AS SELECT 1', 'the application other, but', 26],
    ['CREATE MATERIALIZED VIEW app::"a b" AS SELECT 1', 'the name a b, which is not', 31],
    [
      'CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS app::v AS SELECT 1',
      'both OR REPLACE and IF NOT EXISTS',
      51,
    ],
    [`${create} (a, b) AS SELECT 1`, 'a list of columns', 33],
    [`${create} USING heap AS SELECT 1`, 'USING', 33],
    [`${create} WITH (fillfactor = 70) AS SELECT 1`, 'WITH (storage', 33],
    [`${create} TABLESPACE x AS SELECT 1`, 'TABLESPACE', 33],
    [`${create}`, 'something else where AS', 0],
    [`${create} AS`, 'is empty', 0],
    [`${create} AS SELECT id FROM app::c WITH NO DATA`, 'WITH NO DATA', 58],
    [`${create} AS SELECT id FROM app::c WITH DATA;`, 'WITH DATA', 58],
    [`${create} AS DELETE FROM app::c`, 'DELETE', 36],
    [`${create} AS SELECT id FROM app::c; DROP TABLE x`, 'a second statement', 59],
    [`${create} AS SELECT now() AS t FROM app::c`, 'now, but a view may change', 43],
    [`${create} AS SELECT id FROM app::c WHERE at > CURRENT_DATE`, 'CURRENT_DATE', 69],
    [`${create} AS SELECT :x AS a FROM app::c`, 'the parameter x', 43],
    [`${create} AS SELECT 1 AS "$sum" FROM app::c`, 'the name $sum', 43],
    [`${create} AS SELECT 1 AS "a.b" FROM app::c`, 'the name a.b', 43],
    [`${create} AS SELECT tollbase_place(c) AS a FROM app::c`, 'tollbase_place', 43],
    [`${create} AS SELECT 'abc`, 'no statement', 1],
  ])('a CREATE is refused with its place: %s', async (text, words, column) => {
    const fault = await refusal(text)
    expect(fault.code).toBe('VALIDATION_FAILED')
    expect(fault.message).toContain(words)
    if (column > 0) expect(fault.details).toMatchObject({ line: 1, column })
  })

  it('a CREATE is judged by what is known about the models, at their place in the text', async () => {
    const text = 'CREATE MATERIALIZED VIEW app::v AS SELECT *\nFROM app::w WHERE n > 1'
    const of = (select: string) =>
      parseViewSql(text, 'app', async (models) => {
        expect(models).toEqual(['app::w'])
        return {
          viewOf: (model) =>
            model === 'app::w' ? { select: [select], from: 'app::c' } : undefined,
        }
      })
    await expect(of('n')).resolves.toMatchObject({ definition: { from: 'app::w' } })
    await expect(of('m')).rejects.toMatchObject({ details: { line: 2, column: 19 } })
  })
})
