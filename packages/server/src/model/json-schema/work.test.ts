import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { isRight, listProblems } from './judging.test-support.ts'
import { Work } from './work.ts'

const many = <T>(count: number, make: (at: number) => T): T[] =>
  Array.from({ length: count }, (_, at) => make(at))
const manyMembers = (count: number, make: (at: number) => unknown) =>
  Object.fromEntries(many(count, (at) => [`f${at}`, make(at)]))
const number = { type: 'number' }
const wide = manyMembers(5_000, () => 1)

/** Each is small, and the work would be their product. */
test.each<[string, Record<string, unknown>, unknown]>([
  [
    'alternatives',
    { items: { not: { anyOf: many(1_000, () => ({ type: 'null' })) } } },
    many(2_000, () => 1),
  ],
  ['schemas of all members', { allOf: many(500, () => ({ additionalProperties: number })) }, wide],
  ['patterns of names', { patternProperties: manyMembers(300, () => true) }, wide],
  ['schemas of names', { allOf: many(500, () => ({ propertyNames: { maxLength: 9 } })) }, wide],
  ['items to find', { allOf: many(500, () => ({ contains: number })) }, many(5_000, () => 1)],
  ['names that are needed', { items: { required: Object.keys(wide) } }, many(500, () => wide)],
  [
    'names that need others',
    { items: { dependentRequired: manyMembers(2_000, () => ['f0']) } },
    many(1_000, () => ({})),
  ],
  [
    'schemas of names that are there',
    { items: { dependentSchemas: manyMembers(2_000, () => true) } },
    many(1_000, () => ({})),
  ],
  ['sizes to count', { allOf: many(500, () => ({ minProperties: 1 })) }, wide],
  [
    'lists to compare',
    { allOf: many(500, () => ({ uniqueItems: true })) },
    many(5_000, (at) => at),
  ],
  ['values to compare', { allOf: many(500, (at) => ({ not: { const: at } })) }, wide],
  ['texts to count', { allOf: many(2_000, () => ({ minLength: 20_000 })) }, 'ä'.repeat(30_000)],
  ['items of any kind', { allOf: many(1_000, () => ({ items: true })) }, many(5_000, () => 1)],
  [
    'alternatives that are never right',
    { items: { not: { anyOf: many(3_000, () => false) } } },
    many(5_000, () => 1),
  ],
  [
    'values to compare, and a long name',
    { allOf: many(1_000, () => ({ not: { const: 1 } })) },
    { ['x'.repeat(100_000)]: 1 },
  ],
  [
    'fractions of numbers that are far from them',
    { allOf: many(100, () => ({ items: { multipleOf: 5e-324 } })) },
    many(500, () => 1.7e308),
  ],
  ['addresses to read', { format: 'url' }, `https://${'漢字'.repeat(5_000)}/`],
  ['accents to order', { format: 'idn-email' }, 'a\u0301\u0323'.repeat(5_000)],
  ['classes of letters to prepare', { format: 'regex' }, '[^\\p{L}]'.repeat(1_000)],
  ['texts to read', { allOf: many(500, () => ({ format: 'uri-reference' })) }, 'a'.repeat(10_000)],
  [
    'fractions',
    { allOf: many(500, () => ({ items: { multipleOf: 0.01 } })) },
    many(500, (at) => at / 100),
  ],
  [
    'references',
    { $defs: { a: number }, allOf: many(500, () => ({ items: { $ref: '#/$defs/a' } })) },
    many(5_000, () => 1),
  ],
  ['references to references', makeDoubling(30), 1],
  [
    'members that nothing judged',
    { allOf: many(300, () => ({ properties: { a: true }, unevaluatedProperties: true })) },
    wide,
  ],
  ['members that were judged', nest(300, { additionalProperties: true }), wide],
])(
  'a schema with many %s, and a record with many, are refused after the work of one record',
  (_, schema, record) => {
    const before = process.cpuUsage().user
    expect(() => isRight(schema, record)).toThrow(/too long .*send (a smaller one|shorter ones)/)
    // Microseconds. On a quiet machine it is 30 milliseconds at most; without a bound it would be seconds.
    expect(process.cpuUsage().user - before).toBeLessThan(1_500_000)
  },
)

/** Each definition asks for the next one twice. */
function makeDoubling(levels: number): Record<string, unknown> {
  const $defs = Object.fromEntries(
    many(levels, (at) => [`d${at}`, { allOf: many(2, () => ({ $ref: `#/$defs/d${at + 1}` })) }]),
  )
  return { $ref: '#/$defs/d0', $defs: { ...$defs, [`d${levels}`]: {} } }
}

function nest(levels: number, inner: Record<string, unknown>): Record<string, unknown> {
  const deep = many(levels, () => 0).reduce((schema: object) => ({ allOf: [schema] }), inner)
  return { allOf: [deep], unevaluatedProperties: false }
}

test.each<[string, Record<string, unknown>, unknown]>([
  ['first items', { allOf: many(2_500, () => ({ prefixItems: [true] })) }, many(400_000, () => 1)],
  [
    'types that are named twice',
    { items: { type: [...many(9_000, () => 'string'), 'number'] } },
    many(60_000, () => 1),
  ],
])('%s take no more work than is needed', (_, schema, value) => {
  const before = process.cpuUsage().user
  expect(isRight(schema, value)).toBe(true)
  expect(process.cpuUsage().user - before).toBeLessThan(1_500_000)
})

test('recordSchemaStepsMax: a record of a megabyte is judged by a plain schema', () => {
  const record = { numbers: many(250_000, (at) => at), texts: many(10_000, () => 'some text') }
  const schema = {
    properties: { numbers: { items: number }, texts: { items: { type: 'string', minLength: 1 } } },
  }
  expect(listProblems(schema, record)).toEqual([])
})

test('schemaStepsMax: the records of one call share its work, and each has its own', () => {
  const work = new Work()
  const half = (limits.recordSchemaStepsMax / 2) * 2.5
  const judge = (count: number) => {
    for (let at = 0; at < count; at++) {
      work.spend(half)
      work.beginRecord()
    }
  }
  const most = (limits.schemaStepsMax / limits.recordSchemaStepsMax) * 2
  expect(() => judge(most)).not.toThrow()
  expect(() => judge(1)).toThrow('fewer records at once')
  const other = new Work()
  other.spend(half * 2)
  expect(() => other.spend(1)).toThrow('send a smaller one')
})
