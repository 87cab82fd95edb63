import { limits } from '@tollbase/contract/limits'
import { Check, Compile, Errors } from 'typebox/schema'
import { Fault, invalid } from '../../base/fault.ts'
import { isRecord, ownValue } from '../../base/is-record.ts'
import { checkStorable } from '../../base/json-text.ts'
import { member, parseFieldPath } from '../../query/field-path.ts'
import { compilePattern } from '../../query/pattern.ts'

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

/** Reads a schema_definition, for the records of one call: the `{fields}` form of the public clients, a JSON Schema, or none. */
export function readSchema(definition: unknown): RecordSchema {
  if (!isRecord(definition)) return { problems: () => [], defaults: {} }
  if (!isRecord(definition.fields)) return jsonSchema(definition)
  const fields = Object.entries(definition.fields as Record<string, Field>)
  const required = Array.isArray(definition.required) ? definition.required.map(String) : []
  const matches = patternMatches()
  return {
    problems: (record) => [
      ...required.filter((name) => ownValue(record, name) === undefined).map((name) => lacks(name)),
      ...fields.flatMap(([name, field]) =>
        problemOf(name, field, { value: ownValue(record, name), matches }),
      ),
    ],
    defaults: Object.fromEntries(
      fields.flatMap(([name, field]) =>
        field.default === undefined ? [] : [[name, field.default]],
      ),
    ),
  }
}

/** Refuses a definition that could not be enforced, naming the place. */
export function checkDefinition(definition: unknown, pointer = '/schema_definition'): void {
  if (definition === null || definition === undefined) return
  if (!isRecord(definition)) throw invalid(pointer, 'must be an object')
  if (isRecord(definition.fields)) checkFields(definition.fields, `${pointer}/fields`)
  else checkJsonSchema(definition, pointer)
}

function checkFields(fields: Readonly<Record<string, unknown>>, pointer: string): void {
  for (const [name, field] of Object.entries(fields)) {
    const at = member(pointer, name)
    if (!isRecord(field)) throw invalid(at, 'must be an object')
    // What is indexed or added is read again when the log is applied, where nothing can be refused any more.
    if (field.index === true || field.unique === true) parseFieldPath(name, at)
    if (field.default !== undefined) {
      checkStorable(name, at)
      checkStorable(field.default, `${at}/default`)
    }
    if (field.type !== undefined && !fieldTypes.some((one) => one === field.type)) {
      throw invalid(`${at}/type`, `must be one of ${fieldTypes.join(', ')}`)
    }
    if (field.validation !== undefined && field.validation !== null)
      checkValidation(field.validation, `${at}/validation`)
  }
}

function checkValidation(rule: unknown, at: string): void {
  if (!isRecord(rule)) throw invalid(at, 'must be an object')
  for (const name of ['min', 'max']) {
    if (rule[name] !== undefined && typeof rule[name] !== 'number')
      throw invalid(`${at}/${name}`, 'must be a number')
  }
  if (rule.enum !== undefined && !Array.isArray(rule.enum))
    throw invalid(`${at}/enum`, 'must be a list')
  if (rule.pattern === undefined) return
  if (typeof rule.pattern !== 'string') throw invalid(`${at}/pattern`, 'must be text')
  compilePattern(rule.pattern, `${at}/pattern`)
}

/** Its patterns are those of queries, which end in bounded time; what is wrong beside them shows in one use. */
function checkJsonSchema(schema: Record<string, unknown>, pointer: string): void {
  checkPatterns(schema, pointer)
  try {
    Compile(bounded(schema, false, patternMatches())).Check({})
  } catch (error) {
    throw new Fault('VALIDATION_FAILED', {
      message: `${pointer} cannot be used as a JSON Schema`,
      details: { field: pointer, problem: 'cannot be used as a JSON Schema' },
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
  if (typeof part.pattern === 'string') compilePattern(part.pattern, `${pointer}/pattern`)
  if (isRecord(part.patternProperties)) {
    for (const pattern of Object.keys(part.patternProperties)) {
      const { repeats } = compilePattern(pattern, `${pointer}/patternProperties`)
      // The names of fields are matched by JavaScript, whose time is bounded for these alone.
      if (repeats > 1)
        throw invalid(
          `${pointer}/patternProperties`,
          'may have one quantifier in a pattern, on a character or a class',
        )
    }
  }
  for (const [name, inner] of Object.entries(part)) {
    if (!dataKeywords.includes(name)) checkPatterns(inner, `${pointer}/${name}`)
  }
}

function jsonSchema(schema: Record<string, unknown>): RecordSchema {
  if (Object.keys(schema).length === 0) return { problems: () => [], defaults: {} }
  const judged = bounded(schema, false, patternMatches())
  return { problems: (record) => jsonSchemaProblems(judged, record), defaults: {} }
}

/** Keywords whose members are schemas by name. */
const mapKeywords = ['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas']

/** The schema with each pattern as a test of ours, and without what the library takes for its own instructions. */
function bounded(
  part: Record<string, unknown>,
  isMap: boolean,
  matches: Matches,
): Record<string, unknown>
function bounded(part: unknown, isMap: boolean, matches: Matches): unknown
function bounded(part: unknown, isMap: boolean, matches: Matches): unknown {
  if (Array.isArray(part)) return part.map((item) => bounded(item, false, matches))
  if (!isRecord(part)) return part
  const entries = Object.entries(part).flatMap(([name, inner]): [string, unknown][] => {
    if (isMap) return [[name, bounded(inner, false, matches)]]
    if (name.startsWith('~')) return []
    if (dataKeywords.includes(name)) return [[name, inner]]
    if (name !== 'pattern' || typeof inner !== 'string')
      return [[name, bounded(inner, mapKeywords.includes(name), matches)]]
    const check = (value: unknown) => typeof value !== 'string' || matches(inner, value)
    return [['~refine', [{ check, error: () => `must match ${inner}` }]]]
  })
  return Object.fromEntries(entries)
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

function problemOf(
  name: string,
  field: Field,
  { value, matches }: { value: unknown; matches: Matches },
): Problem[] {
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
  if (rule.pattern !== undefined && typeof value === 'string' && !matches(rule.pattern, value)) {
    problems.push(`must match ${rule.pattern}`)
  }
  if (rule.enum !== undefined && !rule.enum.includes(value))
    problems.push(`must be one of ${JSON.stringify(rule.enum)}`)
  return problems.map((problem) => ({ pointer: `/${name}`, problem }))
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

type Matches = (pattern: string, text: string) => boolean

/** Matches texts with patterns, each read once, all within one bound of work. */
function patternMatches(): Matches {
  const budget = { steps: limits.patternStepsMax }
  const known = new Map<string, ReturnType<typeof compilePattern>>()
  return (pattern, text) => {
    const compiled = known.get(pattern) ?? compilePattern(pattern, '')
    known.set(pattern, compiled)
    return compiled.matches(text, budget)
  }
}

function lacks(name: string): Problem {
  return { pointer: `/${name}`, problem: 'is required' }
}
