import { Check, Compile, Errors } from 'typebox/schema'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { translatePattern } from '../../query/pattern.ts'

/** What breaks a collection's schema, by JSON pointer within the record. */
export type Problem = { readonly pointer: string; readonly problem: string }

export type RecordSchema = {
  readonly problems: (record: Readonly<Record<string, unknown>>) => Problem[]
  /** Values for fields that a record lacks. */
  readonly defaults: Readonly<Record<string, unknown>>
}

type Field = {
  readonly type?: string
  readonly required?: boolean
  readonly default?: unknown
  readonly validation?: {
    readonly min?: number
    readonly max?: number
    readonly pattern?: string
    readonly enum?: readonly unknown[]
  }
}

const fieldTypes = [
  'string',
  'number',
  'integer',
  'boolean',
  'date',
  'object',
  'array',
  'any',
] as const

/** Reads a schema_definition: the `{fields}` form of the public clients, a JSON Schema, or none. */
export function readSchema(definition: unknown): RecordSchema {
  if (!isRecord(definition)) return { problems: () => [], defaults: {} }
  if (!isRecord(definition.fields)) return jsonSchema(definition)
  const fields = Object.entries(definition.fields as Record<string, Field>)
  const required = Array.isArray(definition.required) ? definition.required.map(String) : []
  return {
    problems: (record) => [
      ...required.filter((name) => record[name] === undefined).map((name) => lacks(name)),
      ...fields.flatMap(([name, field]) => problemOf(name, field, record[name])),
    ],
    defaults: Object.fromEntries(
      fields.flatMap(([name, field]) =>
        field.default === undefined ? [] : [[name, field.default]],
      ),
    ),
  }
}

/** Refuses a definition that could not be enforced, naming the place. */
export function checkDefinition(definition: unknown): void {
  if (definition === null || definition === undefined) return
  if (!isRecord(definition)) throw invalid('/schema_definition', 'must be an object')
  if (isRecord(definition.fields)) checkFields(definition.fields)
  else checkJsonSchema(definition)
}

function checkFields(fields: Readonly<Record<string, unknown>>): void {
  for (const [name, field] of Object.entries(fields)) {
    const at = `/schema_definition/fields/${name}`
    if (!isRecord(field)) throw invalid(at, 'must be an object')
    if (field.type !== undefined && !fieldTypes.some((one) => one === field.type)) {
      throw invalid(`${at}/type`, `must be one of ${fieldTypes.join(', ')}`)
    }
    if (isRecord(field.validation) && field.validation.pattern !== undefined) {
      translatePattern(String(field.validation.pattern), `${at}/validation/pattern`)
    }
  }
}

/** Its patterns are those of queries, which end in bounded time; what is wrong beside them shows in one use. */
function checkJsonSchema(schema: Record<string, unknown>): void {
  checkPatterns(schema, '/schema_definition')
  try {
    Compile(schema).Check({})
  } catch (error) {
    throw new Fault('VALIDATION_FAILED', {
      message: '/schema_definition cannot be used as a JSON Schema',
      details: { field: '/schema_definition', problem: 'cannot be used as a JSON Schema' },
      cause: error,
    })
  }
}

/** Keywords whose values are data, not schemas. */
const dataKeywords = ['const', 'enum', 'default', 'examples']

function checkPatterns(part: unknown, pointer: string): void {
  if (Array.isArray(part))
    for (const [at, item] of part.entries()) checkPatterns(item, `${pointer}/${at}`)
  if (!isRecord(part)) return
  if (typeof part.pattern === 'string') translatePattern(part.pattern, `${pointer}/pattern`)
  if (isRecord(part.patternProperties)) {
    for (const pattern of Object.keys(part.patternProperties))
      translatePattern(pattern, `${pointer}/patternProperties`)
  }
  for (const [name, inner] of Object.entries(part)) {
    if (!dataKeywords.includes(name)) checkPatterns(inner, `${pointer}/${name}`)
  }
}

function jsonSchema(schema: Record<string, unknown>): RecordSchema {
  if (Object.keys(schema).length === 0) return { problems: () => [], defaults: {} }
  return { problems: (record) => jsonSchemaProblems(schema, record), defaults: {} }
}

function jsonSchemaProblems(schema: Record<string, unknown>, record: unknown): Problem[] {
  try {
    if (Check(schema, record)) return []
    const [, errors] = Errors(schema, record)
    return errors.map((error) => ({ pointer: error.instancePath, problem: error.message }))
  } catch (error) {
    // A schema that refers to itself without end.
    if (error instanceof RangeError)
      return [{ pointer: '', problem: 'cannot be judged by the schema' }]
    throw error
  }
}

function problemOf(name: string, field: Field, value: unknown): Problem[] {
  if (value === undefined)
    return field.required === true && field.default === undefined ? [lacks(name)] : []
  if (value === null)
    return field.required === true ? [{ pointer: `/${name}`, problem: 'must not be null' }] : []
  if (!hasType(field.type, value))
    return [{ pointer: `/${name}`, problem: `must be of type ${field.type}` }]
  const rule = field.validation ?? {}
  const size =
    typeof value === 'number'
      ? value
      : typeof value === 'string' || Array.isArray(value)
        ? value.length
        : undefined
  const problems: string[] = []
  if (rule.min !== undefined && size !== undefined && size < rule.min)
    problems.push(`must be at least ${rule.min}`)
  if (rule.max !== undefined && size !== undefined && size > rule.max)
    problems.push(`must be at most ${rule.max}`)
  if (
    rule.pattern !== undefined &&
    typeof value === 'string' &&
    !expressionOf(rule.pattern).test(value)
  ) {
    problems.push(`must match ${rule.pattern}`)
  }
  if (rule.enum !== undefined && !rule.enum.includes(value))
    problems.push(`must be one of ${JSON.stringify(rule.enum)}`)
  return problems.map((problem) => ({ pointer: `/${name}`, problem }))
}

/** The leading (?i) of our pattern syntax is a flag in JavaScript. */
function expressionOf(pattern: string): RegExp {
  return pattern.startsWith('(?i)') ? new RegExp(pattern.slice(4), 'iu') : new RegExp(pattern, 'u')
}

function hasType(type: string | undefined, value: unknown): boolean {
  if (type === undefined || type === 'any') return true
  if (type === 'array') return Array.isArray(value)
  if (type === 'object') return isRecord(value)
  if (type === 'integer') return Number.isInteger(value)
  if (type === 'date')
    return (
      (typeof value === 'string' || typeof value === 'number') &&
      !Number.isNaN(new Date(value).getTime())
    )
  return typeof value === type
}

function lacks(name: string): Problem {
  return { pointer: `/${name}`, problem: 'is required' }
}
