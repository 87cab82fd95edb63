import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { countValues } from '../base/count-values.ts'
import { checkSchemaDefinition } from './check-schema.ts'

const many = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at))

test('schemaValuesMax: a schema has the most values that the limit allows, and one more is refused', async () => {
  const empty = { properties: { a: { enum: [] } } }
  const room = limits.schemaValuesMax - countValues(empty, Number.POSITIVE_INFINITY)
  const make = (values: number) => ({ properties: { a: { 'x-notes': many(values, (at) => at) } } })
  await expect(checkSchemaDefinition(make(room))).resolves.toBeUndefined()
  await expect(checkSchemaDefinition(make(room + 1))).rejects.toThrow(
    `is made of more than ${limits.schemaValuesMax} values`,
  )
})

test('schemaCharsMax: a schema has the most characters that the limit allows, and one more is refused', async () => {
  const room = limits.schemaCharsMax - JSON.stringify({ description: '' }).length
  const make = (chars: number) => ({ description: 'x'.repeat(chars) })
  await expect(checkSchemaDefinition(make(room))).resolves.toBeUndefined()
  await expect(checkSchemaDefinition(make(room + 1))).rejects.toThrow(
    `is longer than ${limits.schemaCharsMax} characters`,
  )
})

test('schemaPatternSizeMax: the patterns of a schema are as large together as the limit allows, and one more is refused', async () => {
  // A part for each repetition, and two for the whole.
  const size = 100
  const patterns = many(limits.schemaPatternSizeMax / size, () => `a{${size - 2}}`)
  const forms = [
    (all: string[]) => ({
      properties: Object.fromEntries(all.map((pattern, at) => [`f${at}`, { pattern }])),
    }),
    (all: string[]) => ({
      patternProperties: Object.fromEntries(all.map((pattern, at) => [`${pattern}|^$${at}`, true])),
    }),
    (all: string[]) => ({
      fields: Object.fromEntries(all.map((pattern, at) => [`f${at}`, { validation: { pattern } }])),
    }),
  ]
  for (const [at, form] of forms.entries()) {
    if (at !== 1) await expect(checkSchemaDefinition(form(patterns))).resolves.toBeUndefined()
    await expect(checkSchemaDefinition(form([...patterns, 'a']))).rejects.toThrow(
      `larger than ${limits.schemaPatternSizeMax} parts together`,
    )
  }
})

test('names that the author of a schema gives are no keywords, wherever they stand', async () => {
  for (const keyword of ['properties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
    await expect(
      checkSchemaDefinition({ [keyword]: { mine: { type: 'object' } } }),
    ).resolves.toBeUndefined()
  for (const keyword of ['dependentRequired', 'dependencies'])
    await expect(checkSchemaDefinition({ [keyword]: { mine: ['other'] } })).resolves.toBeUndefined()
  const dialect = { 'https://json-schema.org/draft/2020-12/vocab/core': true }
  await expect(checkSchemaDefinition({ $vocabulary: dialect })).resolves.toBeUndefined()
  await expect(
    checkSchemaDefinition({ dependencies: { mine: { typ: 'object' } } }),
  ).rejects.toThrow('did you mean "type"')
})

test('a reference of a JSON Schema must point to a part of it, whichever way it names the part', async () => {
  const parts = {
    $defs: { city: { type: 'string' }, 'a/b': true, named: { $anchor: 'here', type: 'object' } },
    properties: { home: { type: 'string' }, const: { type: 'string' } },
  }
  const refer = (reference: object) => ({
    ...parts,
    properties: { ...parts.properties, to: { items: [reference] } },
  })
  const good = ['#', '#/$defs/city', '#/$defs/a~1b', '#here', '#/properties/home']
  for (const $ref of good)
    await expect(checkSchemaDefinition(refer({ $ref }))).resolves.toBeUndefined()
  for (const $ref of ['#/$defs/citty', '#there', 'city', 'https://example.com/city.json', '#/%'])
    await expect(checkSchemaDefinition(refer({ $ref }))).rejects.toThrow(
      '/schema_definition/properties/to/items/0/$ref points to nothing in this schema',
    )
  await expect(checkSchemaDefinition(refer({ $dynamicRef: '#none' }))).rejects.toThrow(
    'points to nothing',
  )
  await expect(checkSchemaDefinition(refer({ $ref: 5 }))).rejects.toThrow('must be text')
})

test('a $ref that is data, or the name of a property, is no reference', async () => {
  const data = { enum: [{ $ref: '#/none' }], default: { $ref: '#/none' } }
  await expect(checkSchemaDefinition({ properties: { a: data } })).resolves.toBeUndefined()
  await expect(
    checkSchemaDefinition({ properties: { $ref: { type: 'string' } } }),
  ).resolves.toBeUndefined()
  await expect(
    checkSchemaDefinition({ properties: { default: { $ref: '#/none' } } }),
  ).rejects.toThrow('/schema_definition/properties/default/$ref points to nothing')
})

test('a reference into a part with an $id of its own is found by that id', async () => {
  const $defs = { city: { $id: 'https://example.com/city.json', type: 'string' } }
  const make = ($ref: string) => ({ $id: 'https://example.com/root.json', $defs, items: { $ref } })
  await expect(checkSchemaDefinition(make('city.json'))).resolves.toBeUndefined()
  await expect(checkSchemaDefinition(make('town.json'))).rejects.toThrow('points to nothing')
})

test.each<[object, string]>([
  [{ required: 'name' }, '/required must be a list of names, as ["city"]'],
  [{ required: [5] }, '/required must be a list of names'],
  [{ dependentRequired: { a: 'b' } }, '/dependentRequired/a must be a list of names'],
  [{ minimum: '5' }, '/minimum must be a number'],
  [{ exclusiveMinimum: true }, '/exclusiveMinimum must be a number'],
  [{ multipleOf: 0 }, '/multipleOf must be a number above 0'],
  [{ maxLength: -1 }, '/maxLength must be a whole number, 0 or more'],
  [{ minItems: 1.5 }, '/minItems must be a whole number'],
  [{ uniqueItems: 'yes' }, '/uniqueItems must be true or false'],
  [{ enum: 'x' }, '/enum must be a list'],
  [{ pattern: 5 }, '/pattern must be text, as "^[a-z]+$"'],
  [{ format: 'emial' }, '/format is not a format that is known'],
  [{ properties: { a: 5 } }, '/properties/a must be a schema: an object, or true, or false'],
  [{ properties: [] }, '/properties must be an object, with a schema for each name'],
  [{ patternProperties: { '(': true } }, '/patternProperties is not a pattern that can be used'],
  [{ items: 7 }, '/items must be a schema'],
  [{ items: [{ not: 'x' }] }, '/items/0/not must be a schema'],
  [{ additionalProperties: 'no' }, '/additionalProperties must be a schema'],
  [{ anyOf: [] }, '/anyOf must be a list of schemas, at least one'],
  [{ anyOf: {} }, '/anyOf must be a list of schemas'],
  [{ dependencies: { a: 5 } }, '/dependencies/a must be a schema'],
  [{ $defs: { 'a/b': 3 } }, '/$defs/a~1b must be a schema'],
  [
    { $id: 'https://' },
    '/$id must be a URI of at most 512 ASCII characters, as "https://example.com/order.json"',
  ],
  [
    { $id: `https://a.example/${'b'.repeat(512)}` },
    '/$id must be a URI of at most 512 ASCII characters',
  ],
  [{ $id: 'https://bücher.example/' }, '/$id must be a URI of at most 512 ASCII characters'],
  [
    {
      $id: `https://a.example/${'b'.repeat(400)}/`,
      $defs: { a: { $id: `${'c'.repeat(400)}/` } },
    },
    '/$defs/a/$id makes an address of more than 512 characters, with those of the schemas around it',
  ],
  [{ $anchor: '#a' }, '/$anchor must be a name'],
  [{ title: 5 }, '/title must be text'],
  [{ properties: { a: { typ: 'string' } } }, 'did you mean "type"?'],
  [{ 'x-a': { type: 'string' }, $ref: '#/x-a' }, '/$ref points to something that is no schema'],
])(
  'the JSON Schema %j would judge otherwise than it says, so it is refused: %s',
  async (schema, problem) => {
    await expect(checkSchemaDefinition(schema)).rejects.toThrow(problem)
  },
)

test('a default that its own field does not allow is refused, and named', async () => {
  const check = (a: object) => checkSchemaDefinition({ fields: { a } })
  for (const [field, problem] of [
    [{ type: 'integer', default: 'x' }, 'must be of type integer'],
    [{ type: 'date', default: 'soon' }, 'must be of type date'],
    [{ type: 'string', default: 'y', validation: { enum: ['x'] } }, 'must be one of ["x"]'],
    [{ default: 'y', validation: { pattern: '^x' } }, 'must match ^x'],
    [{ default: 5, validation: { max: 4 } }, 'must be at most 4'],
    [{ default: null, required: true }, 'must not be null'],
  ] as const)
    await expect(check(field)).rejects.toThrow(`/schema_definition/fields/a/default ${problem}`)
  for (const field of [
    { type: 'integer', default: 0 },
    { type: 'string', default: null },
  ])
    await expect(check(field)).resolves.toBeUndefined()
})

test('schemaAddressCharsMax: an address of so many characters is one, and a longer one is refused', async () => {
  const check = (length: number) =>
    checkSchemaDefinition({ $id: 'https://a.example/'.padEnd(length, 'b') })
  await expect(check(limits.schemaAddressCharsMax)).resolves.toBeUndefined()
  await expect(check(limits.schemaAddressCharsMax + 1)).rejects.toThrow(
    '/$id must be a URI of at most',
  )
})
