import type { Schema } from '@tollbase/contract/openapi-components'

/** One line of a schema table, about one field. */
export type FieldRow = {
  /** Path from the root: `results[].id`; empty for the root itself where that is no object. */
  readonly path: string
  readonly depth: number
  readonly type: string
  readonly required: boolean
  /** Bounds, pattern and format, in words. */
  readonly bounds: string
  readonly description: string
}

type Components = { readonly [name: string]: Schema }
type FieldPlace = { readonly path: string; readonly depth: number; readonly required: boolean }

const depthMax = 5

/** Lists a schema as rows, fields of fields below their parents, in the order stated. */
export function listFieldRows(schema: Schema, components: Components): readonly FieldRow[] {
  const rows: FieldRow[] = []
  if (listProperties(resolve(schema, components)).length === 0) {
    rows.push(makeRow(schema, { path: '', depth: 0, required: true }, components))
  }
  addFields(rows, schema, { at: { path: '', depth: 0, required: true }, components })
  return rows
}

/**
 * Makes a value for an example request: the first of the schema's own examples, or else a value that it allows, without
 * optional fields.
 */
export function makeExample(name: string, schema: Schema, components: Components): unknown {
  return buildExample({ name, schema, depth: 0 }, components)
}

type Part = { readonly name: string; readonly schema: Schema; readonly depth: number }

function buildExample({ name, schema, depth }: Part, components: Components): unknown {
  if (depth > depthMax) return null
  const target = resolve(schema, components)
  const [example] = listExamples(target)
  if (example !== undefined) return example
  if (target.const !== undefined) return target.const
  if (target.default !== undefined) return target.default
  const [choice] = listChoices(target).filter((one) => one.type !== 'null')
  if (choice) return buildExample({ name, schema: choice, depth: depth + 1 }, components)
  switch (target.type) {
    case 'object':
      return Object.fromEntries(
        listProperties(target)
          .filter((property) => property.required)
          .map((property) => [
            property.name,
            buildExample({ ...property, depth: depth + 1 }, components),
          ]),
      )
    case 'array':
      return [buildExample({ name, schema: asSchema(target.items), depth: depth + 1 }, components)]
    case 'integer':
    case 'number':
      return Math.max(1, typeof target.minimum === 'number' ? target.minimum : 1)
    case 'boolean':
      return true
    case 'string':
      return exampleText(name, target)
    default:
      return { id: 'st_1', temperature: 21.5 }
  }
}

/** Lists the examples that a schema gives itself. */
export function listExamples(schema: Schema): readonly unknown[] {
  return Array.isArray(schema.examples) ? schema.examples : []
}

function addFields(
  rows: FieldRow[],
  schema: Schema,
  { at, components }: { at: FieldPlace; components: Components },
): void {
  const target = resolve(schema, components)
  if (at.depth > depthMax) return
  for (const choice of listChoices(target)) addFields(rows, choice, { at, components })
  if (target.type === 'array') {
    const items = { ...at, path: `${at.path}[]` }
    addFields(rows, asSchema(target.items), { at: items, components })
  }
  for (const property of listProperties(target)) {
    const path = at.path === '' ? property.name : `${at.path}.${property.name}`
    const place = { path, depth: at.depth, required: property.required }
    rows.push(makeRow(property.schema, place, components))
    const below = { ...place, depth: at.depth + 1 }
    addFields(rows, property.schema, { at: below, components })
  }
}

function makeRow(schema: Schema, place: FieldPlace, components: Components): FieldRow {
  const target = resolve(schema, components)
  const own = typeof schema.description === 'string' ? schema.description : target.description
  return {
    ...place,
    type: typeText(schema, components),
    bounds: formatAllBounds(target, components),
    description: typeof own === 'string' ? own : '',
  }
}

/** Formats a type in the manner of TypeScript: `string | null`, `Collection[]`, `"live" | "lazy"`. */
function typeText(schema: Schema, components: Components): string {
  const name = referenceName(schema)
  if (name !== undefined) return name
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  const choices = listChoices(schema)
  if (choices.length > 0) return choices.map((one) => typeText(one, components)).join(' | ')
  if (schema.type === 'array') {
    const item = typeText(asSchema(schema.items), components)
    return item.includes(' | ') ? `(${item})[]` : `${item}[]`
  }
  return typeof schema.type === 'string' ? schema.type : 'any'
}

const boundWords: readonly (readonly [keyword: string, words: string])[] = [
  ['minimum', 'at least'],
  ['maximum', 'at most'],
  ['minLength', 'min. length'],
  ['maxLength', 'max. length'],
  ['minItems', 'min. items'],
  ['maxItems', 'max. items'],
  ['format', 'format'],
  ['pattern', 'pattern'],
  ['default', 'default'],
]

/** For a choice, the bounds of its members: `integer | null` is bounded as the integer is. */
function formatAllBounds(schema: Schema, components: Components): string {
  const parts = listChoices(schema).map((one) => formatBounds(resolve(one, components)))
  return [formatBounds(schema), ...parts].filter((text) => text !== '').join('; ')
}

function formatBounds(schema: Schema): string {
  return boundWords
    .filter(([keyword]) => schema[keyword] !== undefined)
    .map(([keyword, words]) => `${words} ${boundText(schema[keyword])}`)
    .join(', ')
}

function boundText(value: unknown): string {
  if (value === Number.MAX_SAFE_INTEGER) return '2^53 - 1'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

const exampleTexts: Readonly<Record<string, string>> = {
  app: 'weather',
  app_id: 'weather',
  collection: 'stations',
  name: 'stations',
  root: 'weather::stations',
  field_name: 'city',
  key: 'st_1',
}

function exampleText(name: string, schema: Schema): string {
  const known = exampleTexts[name]
  if (known !== undefined) return known
  if (schema.format === 'date-time') return '2026-01-31T12:00:00.000Z'
  const pattern = typeof schema.pattern === 'string' ? schema.pattern : ''
  if (pattern.includes('{40}')) return `0x${'a1'.repeat(20)}`
  if (pattern.includes('{64}')) return 'a1'.repeat(32)
  if (pattern.includes('[0-9]')) return '1000'
  return name
}

function resolve(schema: Schema, components: Components): Schema {
  const name = referenceName(schema)
  return (name === undefined ? schema : components[name]) ?? {}
}

function referenceName(schema: Schema): string | undefined {
  return typeof schema.$ref === 'string'
    ? schema.$ref.slice(schema.$ref.lastIndexOf('/') + 1)
    : undefined
}

function listProperties(schema: Schema) {
  const required = Array.isArray(schema.required) ? schema.required : []
  return Object.entries(asSchema(schema.properties)).map(([name, property]) => ({
    name,
    schema: asSchema(property),
    required: required.includes(name),
  }))
}

/** An enum is a choice of constants. */
function listChoices(schema: Schema): readonly Schema[] {
  if (Array.isArray(schema.enum)) return schema.enum.map((value) => ({ const: value }))
  const choices = schema.anyOf ?? schema.oneOf
  return Array.isArray(choices) ? choices.map(asSchema) : []
}

/** Plain JSON is untyped: a value that is no object counts as the schema that allows everything. */
function asSchema(value: unknown): Schema {
  return typeof value === 'object' && value !== null ? (value as Schema) : {}
}
