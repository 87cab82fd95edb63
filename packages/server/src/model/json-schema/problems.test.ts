import { expect, test } from 'vitest'
import { listProblems } from './judging.test-support.ts'

test.each<[Record<string, unknown>, unknown, readonly string[]]>([
  [{ type: 'string' }, 5, [' must be of type string']],
  [{ type: ['string', 'null'] }, 5, [' must be of type string or null']],
  [{ properties: { a: { type: 'integer' } } }, { a: 1.5 }, ['/a must be of type integer']],
  [{ required: ['a', 'b'] }, {}, ['/a is required', '/b is required']],
  [{ enum: ['a', 1] }, 'b', [' must be one of ["a",1]']],
  [{ const: { a: 1 } }, {}, [' must be {"a":1}']],
  [{ minimum: 5 }, 4, [' must be at least 5']],
  [{ maximum: 5 }, 6, [' must be at most 5']],
  [{ exclusiveMinimum: 5 }, 5, [' must be more than 5']],
  [{ exclusiveMaximum: 5 }, 5, [' must be less than 5']],
  [{ multipleOf: 0.01 }, 0.075, [' must be a multiple of 0.01']],
  [{ minLength: 2 }, '💶', [' must have at least 2 characters']],
  [{ maxLength: 1 }, 'ab', [' must have at most 1 character']],
  [{ pattern: '^a' }, 'b', [' must match ^a']],
  [{ format: 'email' }, 'b', [' must have the format email']],
  [{ minItems: 1 }, [], [' must have at least 1 item']],
  [{ maxProperties: 0 }, { a: 1 }, [' must have at most 0 members']],
  [
    { uniqueItems: true },
    [{ a: 1, b: 2 }, 3, { b: 2, a: 1 }],
    [' must not have an item twice, as 0 and 2 are'],
  ],
  [
    { items: { type: 'number' } },
    [1, 'a', 2, 'b'],
    ['/1 must be of type number', '/3 must be of type number'],
  ],
  [{ prefixItems: [true, false] }, [1, 2], ['/1 must not be there']],
  [
    { contains: { type: 'string' } },
    [1],
    [' must have at least 1 of the items that contains asks for'],
  ],
  [
    { properties: { price: true }, additionalProperties: false },
    { prise: 1, 'a/b': 1 },
    ['/prise is not in the schema; did you mean "price"?', '/a~1b is not in the schema'],
  ],
  [{ unevaluatedProperties: false }, { a: 1 }, ['/a is not in the schema']],
  [
    { propertyNames: { maxLength: 1 } },
    { ab: 1 },
    ['/ab has a name that the schema does not allow'],
  ],
  [{ dependentRequired: { card: ['cvc'] } }, { card: 1 }, ['/cvc is required where card is given']],
  [{ anyOf: [{ type: 'null' }, { minimum: 1 }] }, 0, [' must match one of the 2 schemas of anyOf']],
  [{ oneOf: [true, true] }, 0, [' must match one of the 2 schemas of oneOf, and matches 2']],
  [{ not: { type: 'number' } }, 0, [' must not match the schema of not']],
  // biome-ignore lint/suspicious/noThenProperty: it is a keyword
  [{ if: { type: 'number' }, then: { minimum: 1 } }, 0, [' must be at least 1']],
  [
    { allOf: [{ minimum: 1 }, { multipleOf: 2 }] },
    -1,
    [' must be at least 1', ' must be a multiple of 2'],
  ],
])('%j tells of %j: %j', (schema, value, problems) => {
  expect(listProblems(schema, value)).toEqual(problems)
})

test('a long name is shown by its beginning', () => {
  const long = 'x'.repeat(200_000)
  const shown = `${'x'.repeat(256)}…`
  expect(listProblems({ additionalProperties: { items: false } }, { [long]: [1] })).toEqual([
    `/${shown}/0 must not be there`,
  ])
  expect(listProblems({ required: [long] }, {})).toEqual([`/${shown} is required`])
  expect(listProblems({ dependentRequired: { [long]: ['a'] } }, { [long]: 1 })).toEqual([
    `/a is required where ${shown} is given`,
  ])
})

test('the name that was meant is looked for ten times for a record, and for short names', () => {
  const properties = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`name${at}`, true]))
  const schema = { properties, additionalProperties: false }
  const record = Object.fromEntries(Array.from({ length: 50 }, (_, at) => [`nam${at}`, 1]))
  const problems = listProblems(schema, record)
  expect(problems.filter((problem) => problem.includes('did you mean'))).toHaveLength(10)
  expect(problems).toHaveLength(50)
  const long = 'x'.repeat(40)
  expect(
    listProblems(
      { properties: { [long]: true }, additionalProperties: false },
      { [`${long}x`]: 1 },
    ),
  ).toEqual([`/${long}x is not in the schema`])
})

test('a record has a hundred problems at most', () => {
  const list = Array.from({ length: 1_000 }, () => 'a')
  expect(listProblems({ items: { type: 'number' } }, list)).toHaveLength(100)
})
