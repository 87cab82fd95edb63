import { readFileSync } from 'node:fs'
import { Check } from 'typebox/value'
import { describe, expect, test } from 'vitest'
import { buildViewQuerySchema, ViewQuery } from './view-definition.ts'

const select = { select: ['a'], from: 'app::orders' }

describe('the grammar of views', () => {
  test('docs/view-query.schema.json is that of the code; npm run openapi writes it anew', () => {
    const file = new URL('../../../docs/view-query.schema.json', import.meta.url)
    const document = JSON.parse(JSON.stringify(buildViewQuerySchema()))
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(document)
  })

  test('the references of the grammar lead somewhere', () => {
    const { $defs, ...document } = buildViewQuerySchema()
    const text = JSON.stringify([$defs, document])
    const names = [...text.matchAll(/"\$ref":"#\/\$defs\/(\w+)"/g)].map(([, name]) => name)
    expect(names).toContain('ViewExpression')
    for (const name of names) expect($defs).toHaveProperty(String(name))
  })

  test.each([
    select,
    { union_all: [select, select], limit: 3 },
    { ...select, select: ['*', { n: { $count: '*', filter: 'paid' } }], group_by: ['a'] },
    { ...select, from: { o: select }, where: { $in: ['o.a', select] } },
    { ...select, joins: [{ join: { c: 'app::customers' }, type: 'left', on: true }] },
    { ...select, select: [{ r: { $rank: [], over: { order_by: ['a'] } } }] },
  ])('the grammar has %j', (query) => {
    expect(Check(ViewQuery, query)).toBe(true)
  })

  test.each([
    {},
    { from: 'app::orders' },
    { ...select, filter: {} },
    { union: [select] },
    { ...select, select: [{ $sum: 'a' }] },
    { ...select, select: [{ a: 1, b: 2 }] },
    { ...select, where: { $eq: ['a', 1], $ne: ['a', 2] } },
    { ...select, where: { $like: 'a' } },
    { ...select, select: [{ n: { $case: 'a' } }] },
    { ...select, select: [{ r: { $rank: [] } }] },
    { ...select, order_by: [{ by: 'a', direction: 'up' }] },
    { ...select, joins: [{ join: 'app::c', type: 'outer' }] },
    { ...select, limit: -1 },
  ])('the grammar does not have %j', (query) => {
    expect(Check(ViewQuery, query)).toBe(false)
  })
})
