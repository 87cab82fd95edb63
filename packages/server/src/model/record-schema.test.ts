import { expect, test } from 'vitest'
import { Work } from './json-schema/work.ts'
import { compileRecordSchema, openRecordJudge } from './record-schema.ts'

const list = (definition: unknown, record: Record<string, unknown>) =>
  compileRecordSchema(definition).listProblems(record, new Work())

test('a reference is followed as far as records need it', () => {
  const definition = {
    $defs: { item: { type: 'object', properties: { n: { type: 'number' } } } },
    properties: { items: { type: 'array', items: { $ref: '#/$defs/item' } } },
  }
  const items = Array.from({ length: 1_000 }, (_, n) => ({ n }))
  expect(list(definition, { items })).toEqual([])
  expect(list(definition, { items: [{ n: 'one' }] })).toEqual([
    { pointer: '/items/0/n', problem: 'must be of type number' },
  ])
})

test('a JSON Schema that nests into itself doubles with the record, and is refused for a deep one', () => {
  const self = { $ref: '#' }
  const definition = { properties: { in: { allOf: [self, self] } } }
  const nest = (depth: number): Record<string, unknown> =>
    depth === 0 ? {} : { in: nest(depth - 1) }
  expect(list(definition, nest(3))).toEqual([])
  expect(() => list(definition, nest(60))).toThrow(/takes too long to judge/)
})

test('a JSON Schema that refers to itself without end judges no record', () => {
  const problems = [{ pointer: '', problem: 'cannot be judged by the schema' }]
  expect(list({ $ref: '#' }, { a: 1 })).toEqual(problems)
  expect(list({ allOf: [{ $ref: '#' }, { $ref: '#' }] }, { a: 1 })).toEqual(problems)
})

test('a problem of a field names it by a pointer, and shows a long list by its beginning', () => {
  const names = Array.from({ length: 9_000 }, (_, at) => `name ${at}`)
  const fields = { 'a/b': { validation: { enum: names } }, 'c~d': { required: true } }
  const [first, second] = list({ fields }, { 'a/b': 'none' })
  expect(first?.pointer).toBe('/a~1b')
  expect(first?.problem).toMatch(/^must be one of \["name 0",.{185,190}…$/)
  expect(second).toEqual({ pointer: '/c~0d', problem: 'is required' })
})

test('both forms of a schema tell of their fields alike', () => {
  const fields = { a: { type: 'string', required: true }, b: { type: 'integer' } }
  const properties = { a: { type: 'string' }, b: { type: 'integer' } }
  for (const record of [{}, { a: 5 }, { a: 'x', b: 1.5 }, { a: 'x', b: 1 }])
    expect(list({ fields }, record)).toEqual(list({ properties, required: ['a'] }, record))
})

test('other requests have their turns between the records of a call', async () => {
  const { listProblems } = openRecordJudge({ items: { type: 'number' }, minProperties: 1 })
  let turns = 0
  const beside = setInterval(() => {
    turns += 1
  }, 0)
  const record = Object.fromEntries(Array.from({ length: 5_000 }, (_, at) => [`f${at}`, at]))
  for (let at = 0; at < 500; at++) await listProblems(record)
  clearInterval(beside)
  expect(turns).toBeGreaterThan(10)
})
