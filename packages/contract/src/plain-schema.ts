import type { Schema } from './openapi-components.ts'

/** The components of a document, by their names. */
export type Schemas = Map<string, Schema>

/** Converts a schema to JSON and moves every schema with an `$id` to the components. */
export function toPlainSchema(schema: object, schemas: Schemas): Schema {
  const { $id, ...rest } = JSON.parse(JSON.stringify(schema)) as Schema
  const converted = convertKeywords(rest, schemas)
  if (typeof $id !== 'string') return converted
  const known = schemas.get($id)
  if (known && JSON.stringify(known) !== JSON.stringify(converted)) {
    throw new Error(`two schemas are called ${$id}`)
  }
  schemas.set($id, converted)
  return { $ref: `#/components/schemas/${$id}` }
}

/** Converts the keywords whose values are schemas; all others (`const`, `enum`, `default`) are data. */
function convertKeywords(schema: Schema, schemas: Schemas): Schema {
  // `problem` is the text for a wrong value; it is not part of a JSON Schema.
  const { problem: _, ...rest } = schema
  return Object.fromEntries(
    Object.entries(toEnum(toDescribed(rest))).map(([keyword, value]) => {
      if (schemaMaps.has(keyword) && isObject(value)) {
        const named = Object.entries(value).map(([name, one]) => [name, walk(one, schemas)])
        return [keyword, Object.fromEntries(named)]
      }
      return [keyword, schemaKeywords.has(keyword) ? walk(value, schemas) : value]
    }),
  )
}

/** Gives a value that may be null the description of the value: readers look for it at the member itself. */
function toDescribed(schema: Schema): Schema {
  const { anyOf, ...rest } = schema
  if (!Array.isArray(anyOf) || anyOf.length !== 2 || rest.description !== undefined) return schema
  const [value, other]: readonly unknown[] = anyOf
  const isNull = isObject(other) && other.type === 'null'
  if (!isNull || !isObject(value) || value.description === undefined) return schema
  const { description, ...bare } = value
  // The description of a component stays with it, too: others refer to it.
  return { anyOf: [value.$id === undefined ? bare : value, other], ...rest, description }
}

/** Writes a choice of words as an `enum`: generators make a class of each member of an `anyOf`. */
function toEnum({ anyOf, ...rest }: Schema): Schema {
  if (!Array.isArray(anyOf)) return anyOf === undefined ? rest : { anyOf, ...rest }
  const isWord = (one: unknown) =>
    isObject(one) && typeof one.const === 'string' && Object.keys(one).length === 2
  if (!anyOf.every(isWord)) return { anyOf, ...rest }
  return { type: 'string', enum: anyOf.map((one) => one.const), ...rest }
}

const schemaMaps = new Set(['properties', 'patternProperties'])
const schemaKeywords = new Set([
  'items',
  'anyOf',
  'oneOf',
  'allOf',
  'not',
  'additionalProperties',
  'propertyNames',
])

function walk(value: unknown, schemas: Schemas): unknown {
  if (Array.isArray(value)) return value.map((one) => walk(one, schemas))
  return isObject(value) ? toPlainSchema(value, schemas) : value
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
