import type { Random } from './random.ts'
import {
  collections,
  makeAccessPolicy,
  makeFind,
  makeOdd,
  makeRecord,
  makeSchemaDefinition,
  makeSelect,
  pickField,
  pickOddText,
  type Value,
} from './values.ts'

/** A JSON Schema as TypeBox writes it; keywords that are not listed do not matter here. */
export type Schema = {
  readonly type?: string
  readonly const?: Value
  readonly anyOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly minItems?: number
  readonly maxItems?: number
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly format?: string
}

/** The usual values of a field of this name, where its schema alone would give noise. */
const byName: Readonly<Record<string, (random: Random) => Value>> = {
  root: (random) =>
    `{{app}}::${random.chance(0.9) ? random.pick(collections) : pickOddText(random)}`,
  data: (random) => random.list(1 + random.below(3), () => makeRecord(random)),
  find: (random) => makeFind(random),
  select: (random) => makeSelect(random),
  sortBy: pickField,
  orderBy: pickField,
  sortDirection: (random) => random.pick(['asc', 'desc', 'ascending', 'up', '']),
  schema_definition: makeSchemaDefinition,
  access_policy: makeAccessPolicy,
  primary_column: (random) =>
    random.chance(0.8) ? random.pick(['id', 'name']) : pickField(random),
  sort_column: pickField,
  name: (random) => random.pick([...collections, 'victim', 'default', pickOddText(random)]),
  collection: (random) => random.pick(collections),
  app_id: (random) => random.pick(['{{app}}', '{{other}}', 'nobody', pickOddText(random)]),
  x402Version: (random) => random.pick([1, 2, 3]),
  paymentPayload: (random) => random.pick<Value>(['{{payload.1}}', {}, makeOdd(random)]),
  expires_at: (random) =>
    random.pick<Value>([
      null,
      '2999-01-01T00:00:00.000Z',
      '2999-01-01T23:59:60Z',
      '2999-02-30T00:00:00Z',
      '9999-12-31T23:59:59+14:00',
    ]),
  limit: (random) => random.pick<Value>([0, 1, 3, 100, 1000, 200_000, null]),
  offset: (random) => random.pick<Value>([0, 1, 7, 1_000_000]),
  key_hash: (random) => random.pick(['{{hash.victim}}', '{{hash.read}}', '0'.repeat(64)]),
}

/** Makes a value that the schema allows, as far as a simple reading of it goes. */
export function makeFromSchema(schema: Schema, random: Random, name = ''): Value {
  const usual = Object.hasOwn(byName, name) ? byName[name] : undefined
  if (usual !== undefined && random.chance(0.9)) return usual(random)
  if (schema.const !== undefined) return schema.const
  if (schema.anyOf !== undefined) return makeFromSchema(random.pick(schema.anyOf), random)
  switch (schema.type) {
    case 'object':
      return objectFrom(schema, random)
    case 'array': {
      const most = Math.min(schema.maxItems ?? 4, 4)
      const count = Math.max(schema.minItems ?? 0, random.below(most + 1))
      return random.list(count, () => makeFromSchema(schema.items ?? {}, random))
    }
    case 'string':
      return textFrom(schema, random)
    case 'integer':
      return Math.round(numberFrom(schema, random))
    case 'number':
      return numberFrom(schema, random)
    case 'boolean':
      return random.chance(0.5)
    case 'null':
      return null
    default:
      return random.chance(0.5) ? makeRecord(random) : makeOdd(random)
  }
}

function objectFrom(schema: Schema, random: Random): Value {
  const required = new Set(schema.required ?? [])
  return Object.fromEntries(
    Object.entries(schema.properties ?? {}).flatMap(([name, inner]) =>
      required.has(name) || random.chance(0.5) ? [[name, makeFromSchema(inner, random, name)]] : [],
    ),
  )
}

/** Texts that match the contract's patterns; a text for a new pattern is found by chance alone. */
const patterned: readonly (readonly [RegExp, readonly string[]])[] = [
  [/0x\[0-9a-fA-F\]\{40\}/, ['{{payer}}', `0x${'0'.repeat(40)}`, `0x${'aB'.repeat(20)}`]],
  [/\[0-9a-f\]\{64\}/, ['{{hash.victim}}', '{{hash.read}}', 'f'.repeat(64)]],
  [/\[a-z\]\[a-z0-9_-\]/, ['{{app}}', '{{other}}', 'system', 'nobody']],
  [/\[1-9\]\[0-9\]/, ['0', '1000', '999999999999999', '9999999999999999']],
]

function textFrom(schema: Schema, random: Random): string {
  if (schema.format === 'date-time') return '2999-01-01T00:00:00.000Z'
  const { pattern } = schema
  if (pattern !== undefined) {
    const known = patterned.find(([form]) => form.test(pattern))
    return random.pick(known?.[1] ?? collections)
  }
  const least = schema.minLength ?? 0
  const most = schema.maxLength ?? 64
  const length = random.pick([least, Math.min(least + 7, most), Math.min(most, 3000)])
  return random.chance(0.2) ? pickOddText(random) : 'n'.repeat(length)
}

function numberFrom(schema: Schema, random: Random): number {
  const least = schema.minimum ?? -1000
  const most = schema.maximum ?? 1_000_000
  return random.pick([least, most, least + random.next() * Math.min(most - least, 10)])
}

/** Changes one place of the value to something that the schema does not know. */
export function makeNearly(value: Value, random: Random): Value {
  const isList = Array.isArray(value)
  if (typeof value !== 'object' || value === null || random.chance(0.15)) return makeOdd(random)
  const entries: [string, Value][] = Object.entries(value)
  const at = random.below(entries.length + 1)
  const chosen = entries[at]
  if (chosen === undefined) return isList ? [...value, makeOdd(random)] : extended(entries, random)
  if (random.chance(0.3)) entries.splice(at, 1)
  else entries[at] = [chosen[0], makeNearly(chosen[1], random)]
  return isList ? entries.map(([, item]) => item) : Object.fromEntries(entries)
}

function extended(entries: readonly (readonly [string, Value])[], random: Random): Value {
  return Object.fromEntries([...entries, [pickOddText(random), makeOdd(random)]])
}
