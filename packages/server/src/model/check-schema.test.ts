import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { countValues } from '../base/count-values.ts'
import { checkSchemaDefinition } from './check-schema.ts'

const many = <T>(count: number, make: (at: number) => T) =>
  Array.from({ length: count }, (_, at) => make(at))

test('schemaValuesMax: a schema has the most values that the limit allows, and one more is refused', () => {
  const empty = { properties: { a: { enum: [] } } }
  const room = limits.schemaValuesMax - countValues(empty, Number.POSITIVE_INFINITY)
  const make = (values: number) => ({ properties: { a: { 'x-notes': many(values, (at) => at) } } })
  expect(() => checkSchemaDefinition(make(room))).not.toThrow()
  expect(() => checkSchemaDefinition(make(room + 1))).toThrow(
    `is made of more than ${limits.schemaValuesMax} values`,
  )
})

test('schemaCharsMax: a schema has the most characters that the limit allows, and one more is refused', () => {
  const room = limits.schemaCharsMax - JSON.stringify({ description: '' }).length
  const make = (chars: number) => ({ description: 'x'.repeat(chars) })
  expect(() => checkSchemaDefinition(make(room))).not.toThrow()
  expect(() => checkSchemaDefinition(make(room + 1))).toThrow(
    `is longer than ${limits.schemaCharsMax} characters`,
  )
})

test('schemaReferencesMax: a JSON Schema has the most references that the limit allows, and one more is refused', () => {
  const make = (references: number) => ({
    $defs: { a: { type: 'string' } },
    properties: Object.fromEntries(many(references, (at) => [`f${at}`, { $ref: '#/$defs/a' }])),
  })
  expect(() => checkSchemaDefinition(make(limits.schemaReferencesMax))).not.toThrow()
  expect(() => checkSchemaDefinition(make(limits.schemaReferencesMax + 1))).toThrow(
    `has more than ${limits.schemaReferencesMax} references`,
  )
})

test('names that the author of a schema gives are no keywords, wherever they stand', () => {
  for (const keyword of ['properties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'])
    expect(() => checkSchemaDefinition({ [keyword]: { mine: { type: 'object' } } })).not.toThrow()
  for (const keyword of ['dependentRequired', 'dependencies'])
    expect(() => checkSchemaDefinition({ [keyword]: { mine: ['other'] } })).not.toThrow()
  const dialect = { 'https://json-schema.org/draft/2020-12/vocab/core': true }
  expect(() => checkSchemaDefinition({ $vocabulary: dialect })).not.toThrow()
  expect(() => checkSchemaDefinition({ dependencies: { mine: { typ: 'object' } } })).toThrow(
    'did you mean "type"',
  )
})
