import type { TObject, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { describeSchemaError } from '../base/describe-schema-error.ts'
import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { findSuggestion, formatSuggestion } from '../base/known-members.ts'

export type Check = (value: unknown, pointer: string) => void

/** The checks of a process, which may open its service several times. */
const checks = new WeakMap<TSchema, Check>()

/** Compiles a check, once per schema; it throws a 400 that names the first wrong field. */
export function compileCheck(schema: TSchema): Check {
  const known = checks.get(schema)
  if (known !== undefined) return known
  const check = makeCheck(schema)
  checks.set(schema, check)
  return check
}

function makeCheck(schema: TSchema): Check {
  const compiled = Compile(schema)
  return (value, pointer) => {
    if (compiled.Check(value)) return
    const errors = [...compiled.Errors(value)]
    const [first] = errors
    if (first === undefined) throw makeInvalidFault(pointer, 'is not valid')
    const words = errors.flatMap((each) => findWord(each, first.instancePath))
    if (first.keyword === 'required' && 'requiredProperties' in first.params) {
      const [missing] = [first.params.requiredProperties].flat()
      throw makeInvalidFault(`${pointer}${first.instancePath}/${String(missing)}`, 'is needed')
    }
    const isName = first.schemaPath.endsWith('/propertyNames')
    const told = findProblem(schema, toPath(first), isName)
    if (told !== undefined) throw makeInvalidFault(pointer + first.instancePath, told)
    const problem =
      words.length === 0 ? describe(first) : describeChoice(words, valueAt(value, first))
    throw makeInvalidFault(pointer + first.instancePath, problem)
  }
}

type SchemaError = {
  readonly keyword: string
  readonly schemaPath: string
  readonly message: string
  readonly params: object
  readonly instancePath: string
}

/** Returns the word that could stand at a place, if the error names one. */
function findWord({ keyword, params, instancePath }: SchemaError, at: string): readonly string[] {
  const isWord = keyword === 'const' && instancePath === at && 'allowedValue' in params
  return isWord ? [String(params.allowedValue)] : []
}

function describeChoice(words: readonly string[], value: unknown): string {
  const meant = typeof value === 'string' ? findSuggestion(value, words) : undefined
  return `must be ${words.join(' or ')}${formatSuggestion(meant)}`
}

function valueAt(value: unknown, { instancePath }: Pick<SchemaError, 'instancePath'>): unknown {
  return toPath({ instancePath }).reduce<unknown>((at, name) => {
    if (Array.isArray(at)) return at[Number(name)]
    return isRecord(at) ? at[name] : undefined
  }, value)
}

function toPath({ instancePath }: Pick<SchemaError, 'instancePath'>): string[] {
  const names = instancePath.split('/').slice(1)
  return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** Finds the message that the schema of a place has for a wrong value there, or for the name of the last member. */
function findProblem(
  schema: unknown,
  path: readonly string[],
  isName: boolean,
): string | undefined {
  if (!isRecord(schema)) return undefined
  const [first, ...rest] = path
  if (isName && rest.length === 0 && isRecord(schema.propertyNames))
    return `is no name that fits here: a name ${schema.propertyNames.problem}`
  if (first === undefined && typeof schema.problem === 'string') return schema.problem
  const inner = first === undefined ? [] : [getInner(schema, first)]
  const kinds: readonly unknown[] = Array.isArray(schema.anyOf) ? schema.anyOf : []
  for (const one of inner) {
    const found = findProblem(one, rest, isName)
    if (found !== undefined) return found
  }
  for (const kind of kinds) {
    const found = findProblem(kind, path, isName)
    if (found !== undefined) return found
  }
  return undefined
}

function getInner(schema: Readonly<Record<string, unknown>>, name: string): unknown {
  const { properties, patternProperties, additionalProperties } = schema
  if (isRecord(properties) && Object.hasOwn(properties, name)) return properties[name]
  if (isRecord(patternProperties)) return Object.values(patternProperties)[0]
  return schema.items ?? additionalProperties
}

function describe(error: SchemaError): string {
  // A member of an object that names all its members, and not this one.
  if (error.keyword === 'boolean') return 'is not known here'
  if (error.keyword === 'additionalProperties' && 'additionalProperties' in error.params) {
    return `has an unknown field: ${String(error.params.additionalProperties)}`
  }
  return describeSchemaError(error)
}

/**
 * Parses query and path parameters, which arrive as text: converts those whose schema says number or boolean, and
 * refuses a repeated one. Unknown parameters pass (keys and cache busters travel there).
 */
export function parseTexts(
  schema: TObject,
  texts: Readonly<Record<string, string | string[]>>,
  pointer: string,
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    const text = texts[name]
    if (text === undefined) continue
    if (Array.isArray(text)) throw makeInvalidFault(`${pointer}/${name}`, 'is given more than once')
    // No name contains U+0000, and PostgreSQL stores no text with it.
    if (text.includes('\0'))
      throw makeInvalidFault(`${pointer}/${name}`, 'must not contain the character U+0000')
    values[name] = parseText(property, text)
  }
  return values
}

function parseText(schema: TSchema, text: string): unknown {
  const type = 'type' in schema ? schema.type : undefined
  if ((type === 'integer' || type === 'number') && /^-?\d{1,16}(\.\d{1,16})?$/.test(text))
    return Number(text)
  if (type === 'boolean' && text === 'true') return true
  if (type === 'boolean' && text === 'false') return false
  return text
}
