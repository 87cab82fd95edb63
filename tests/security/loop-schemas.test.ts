import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectQuick, type HeldPlace, many, openHeldPlace, post, toObject } from './held-loop.ts'

let place: HeldPlace

beforeAll(async () => {
  place = await openHeldPlace()
})
afterAll(() => place?.close())

const path = '/api/apps/loopy/collections'
const makeMany = (count: number, make: (at: number) => unknown) =>
  toObject(count, (at) => [`f${at}`, make(at)])
const wide = makeMany(5_000, () => 1)
const number = { type: 'number' }

/** As large as a schema may be, each in its own way; some are refused. */
const definitions: Readonly<Record<string, object>> = {
  'fields with defaults': { fields: makeMany(3_000, (default_) => ({ default: default_ })) },
  'fields with rules': {
    fields: makeMany(1_100, () => ({ type: 'string', required: true, validation: { min: 1 } })),
  },
  'many properties': { properties: makeMany(9_000, () => true) },
  'many references': {
    $defs: { a: { $anchor: 'a', type: 'string' } },
    properties: makeMany(4_500, () => ({ $ref: '#a' })),
  },
  'many addresses': {
    $defs: makeMany(2_000, (at) => ({ $id: `https://example.com/${at}`, $anchor: 'a' })),
    properties: makeMany(1_000, (at) => ({ $ref: `https://example.com/${at}#a` })),
  },
  'lists in lists': {
    properties: { deep: many(50, () => 0).reduce<object>((s) => ({ anyOf: [s, {}] }), number) },
    anyOf: many(3_000, () => ({ type: 'string' })),
  },
  'large patterns': { properties: makeMany(50, () => ({ pattern: '(a?b?c?d?){70}' })) },
  'too many patterns': { properties: makeMany(4_900, () => ({ pattern: '(a?b?c?d?){80}' })) },
  'a word that is none at its end': {
    properties: { ...makeMany(4_000, () => ({})), a: { typ: 1 } },
  },
  'long lists of words': { properties: makeMany(90, () => ({ enum: many(100, (at) => `${at}`) })) },
}

/** Small schemas and records whose product is not. */
const records: Readonly<Record<string, readonly [schema: object, record: object]>> = {
  'items of many properties': [
    { properties: { list: { items: { properties: makeMany(1_500, () => number) } } } },
    { list: many(20_000, () => ({})) },
  ],
  'many alternatives': [
    { properties: { list: { items: { anyOf: many(1_000, () => ({ type: 'null' })) } } } },
    { list: many(20_000, () => 1) },
  ],
  'schemas of all members': [
    { allOf: many(500, () => ({ additionalProperties: { not: { type: 'null' } } })) },
    wide,
  ],
  'schemas of names': [{ allOf: many(500, () => ({ propertyNames: { maxLength: 9 } })) }, wide],
  'patterns of names': [{ patternProperties: makeMany(300, () => true) }, wide],
  'lists to compare': [
    { properties: { list: { allOf: many(500, () => ({ uniqueItems: true })) } } },
    { list: many(20_000, (at) => ({ at })) },
  ],
  'problems of all items': [
    { properties: { list: { items: { type: 'string' } } } },
    { list: many(100_000, (at) => at) },
  ],
  'members that nothing judged': [
    { allOf: many(300, () => ({ properties: { a: true }, unevaluatedProperties: true })) },
    wide,
  ],
  'a text of no format': [
    { properties: { text: { type: 'string' } } },
    { text: 'a'.repeat(700_000) },
  ],
  'a text of a format': [
    { properties: { text: { format: 'uri-reference' } } },
    { text: 'a'.repeat(700_000) },
  ],
}

describe('a request about a schema, however large that is, holds up no others', () => {
  test.each(Object.entries(definitions))('a definition of %s', async (_, schema_definition) => {
    let made = 0
    const name = expect.getState().currentTestName?.replaceAll(/\W+/g, '_').slice(-40)
    await expectQuick(place.client, () =>
      post(path, { name: `${name}_${made++}`, schema_definition }, place.app.headers),
    )
  })

  test.each(Object.entries(records))('a record with %s', async (title, [schema, record]) => {
    const name = title.replaceAll(' ', '_')
    await place.ask('POST', path, { name, schema_definition: schema })
    const { headers } = place.app
    await expectQuick(
      place.client,
      post('/store', { root: `loopy::${name}`, data: [record] }, headers),
    )
    await expectQuick(place.client, post(`${path}/${name}/validate`, { data: record }, headers))
  })
})
