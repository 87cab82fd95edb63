import type { TObject, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { invalid } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { meantBy, meantText } from '../base/known-members.ts'

export type Check = (value: unknown, pointer: string) => void

/** A check made once per schema; it throws a 400 that names the first field that is wrong. */
export function checkOf(schema: TSchema): Check {
  const compiled = Compile(schema)
  return (value, pointer) => {
    if (compiled.Check(value)) return
    const errors = [...compiled.Errors(value)]
    const [first] = errors
    if (first === undefined) throw invalid(pointer, 'is not valid')
    const words = errors.flatMap((each) => wordOf(each, first.instancePath))
    if (first.keyword === 'required' && 'requiredProperties' in first.params) {
      const [missing] = [first.params.requiredProperties].flat()
      throw invalid(`${pointer}${first.instancePath}/${String(missing)}`, 'is needed')
    }
    const told = problemOf(schema, pathOf(first))
    if (told !== undefined) throw invalid(pointer + first.instancePath, told)
    const problem = words.length === 0 ? describe(first) : choiceOf(words, valueAt(value, first))
    throw invalid(pointer + first.instancePath, problem)
  }
}

type SchemaError = {
  readonly keyword: string
  readonly message: string
  readonly params: object
  readonly instancePath: string
}

/** A word that could stand at a place. */
function wordOf({ keyword, params, instancePath }: SchemaError, at: string): readonly string[] {
  const isWord = keyword === 'const' && instancePath === at && 'allowedValue' in params
  return isWord ? [String(params.allowedValue)] : []
}

function choiceOf(words: readonly string[], value: unknown): string {
  const meant = typeof value === 'string' ? meantBy(value, words) : undefined
  return `must be ${words.join(' or ')}${meantText(meant)}`
}

function valueAt(value: unknown, { instancePath }: SchemaError): unknown {
  return pathOf({ instancePath }).reduce<unknown>((at, name) => {
    if (Array.isArray(at)) return at[Number(name)]
    return isRecord(at) ? at[name] : undefined
  }, value)
}

function pathOf({ instancePath }: Pick<SchemaError, 'instancePath'>): string[] {
  const names = instancePath.split('/').slice(1)
  return names.map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
}

/** What the schema of a place says of a wrong value, in words. */
function problemOf(schema: unknown, path: readonly string[]): string | undefined {
  if (!isRecord(schema)) return undefined
  const [first, ...rest] = path
  if (first === undefined && typeof schema.problem === 'string') return schema.problem
  const inner = first === undefined ? [] : [innerOf(schema, first)]
  const kinds: readonly unknown[] = Array.isArray(schema.anyOf) ? schema.anyOf : []
  for (const one of inner) {
    const found = problemOf(one, rest)
    if (found !== undefined) return found
  }
  for (const kind of kinds) {
    const found = problemOf(kind, path)
    if (found !== undefined) return found
  }
  return undefined
}

function innerOf(schema: Readonly<Record<string, unknown>>, name: string): unknown {
  if (isRecord(schema.properties)) return schema.properties[name]
  if (isRecord(schema.patternProperties)) return Object.values(schema.patternProperties)[0]
  return schema.items
}

function describe(error: SchemaError): string {
  // What an object that names all its members does not have.
  if (error.keyword === 'boolean') return 'is not known here'
  if (error.keyword === 'additionalProperties' && 'additionalProperties' in error.params) {
    return `has an unknown field: ${String(error.params.additionalProperties)}`
  }
  return error.message
}

/**
 * Query and path parameters arrive as text: gives those whose schema says so their number or
 * boolean, and refuses a repeated one. Unknown parameters pass (keys and cache busters travel there).
 */
export function readTexts(
  schema: TObject,
  texts: Readonly<Record<string, string | string[]>>,
  pointer: string,
): Record<string, unknown> {
  const values: Record<string, unknown> = {}
  for (const [name, property] of Object.entries(schema.properties)) {
    const text = texts[name]
    if (text === undefined) continue
    if (Array.isArray(text)) throw invalid(`${pointer}/${name}`, 'is given more than once')
    // No name has it, and PostgreSQL has no text with it.
    if (text.includes('\0'))
      throw invalid(`${pointer}/${name}`, 'must not contain the character U+0000')
    values[name] = readText(property, text)
  }
  return values
}

function readText(schema: TSchema, text: string): unknown {
  const type = 'type' in schema ? schema.type : undefined
  if ((type === 'integer' || type === 'number') && /^-?\d{1,16}(\.\d{1,16})?$/.test(text))
    return Number(text)
  if (type === 'boolean' && text === 'true') return true
  if (type === 'boolean' && text === 'false') return false
  return text
}
