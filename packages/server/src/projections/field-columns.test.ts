import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { listFieldColumns, listMissingColumns } from './field-columns.ts'

const { fieldColumnsMax } = limits

function declare(count: number, type = 'number') {
  const names = Array.from({ length: count }, (_, at) => `f${at}`)
  return {
    schema_definition: { properties: Object.fromEntries(names.map((name) => [name, { type }])) },
  }
}

function listNames(count: number, type: string): ReadonlySet<string> {
  return new Set(listFieldColumns(declare(count, type)).map(({ name }) => name))
}

test('so many declared fields have columns, the first ones of the schema, and a field more has none', () => {
  expect(listFieldColumns(declare(fieldColumnsMax))).toHaveLength(fieldColumnsMax)
  const paths = listFieldColumns(declare(fieldColumnsMax + 1)).map(({ path }) => path.join('.'))
  expect(paths).toHaveLength(fieldColumnsMax)
  expect(paths).toContain(`f${fieldColumnsMax - 1}`)
  expect(paths).not.toContain(`f${fieldColumnsMax}`)
})

test('texts, numbers and truth values have columns; dates, lists, objects and names that no query can say have none', () => {
  const types = ['string', 'number', 'integer', 'boolean', 'object', 'array']
  const properties = {
    ...Object.fromEntries(types.map((type) => [`of_${type}`, { type }])),
    at: { type: 'string', format: 'date-time' },
    'a..b': { type: 'number' },
    inner: { type: 'object', properties: { n: { type: 'number' } } },
  }
  const columns = listFieldColumns({ schema_definition: { properties } })
  expect(columns.map(({ path, type }) => `${path.join('.')} ${type}`)).toEqual([
    'of_string text',
    'of_number number',
    'of_integer number',
    'of_boolean boolean',
    'inner.n number',
  ])
  expect(listFieldColumns({ schema_definition: { properties }, encrypted: true })).toEqual([])
  expect(listFieldColumns({ schema_definition: null })).toEqual([])
})

test('a table gets columns of declared fields until it has had twice as many as a schema can have', () => {
  const texts = listNames(fieldColumnsMax, 'string')
  expect(listMissingColumns(declare(fieldColumnsMax), texts)).toHaveLength(fieldColumnsMax)
  const more = new Set([...texts, 'f_number_of_earlier'])
  expect(listMissingColumns(declare(fieldColumnsMax), more)).toEqual([])
  expect(listMissingColumns(declare(fieldColumnsMax - 1), more)).toHaveLength(fieldColumnsMax - 1)
})
