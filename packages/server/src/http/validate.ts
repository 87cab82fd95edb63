import type { TObject, TSchema } from 'typebox'
import { Compile } from 'typebox/compile'
import { invalid } from '../base/fault.ts'

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
    const problem = words.length === 0 ? describe(first) : `must be ${words.join(' or ')}`
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

function describe(error: SchemaError): string {
  // What an object that names all its members does not have.
  if (error.keyword === 'boolean') return 'is not known here'
  if (error.keyword === 'required' && 'requiredProperties' in error.params) {
    return `lacks ${String(error.params.requiredProperties)}`
  }
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
