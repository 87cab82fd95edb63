import { limits } from '@tollbase/contract/limits'
import {
  jsonSchemaKeywords,
  jsonTypes,
  SchemaDefinition,
  SchemaField,
} from '@tollbase/contract/schema-definition'
import { Has } from 'typebox/format'
import { Compile } from 'typebox/schema'
import { countValues } from '../base/count-values.ts'
import { Fault, invalid } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { checkStorable } from '../base/json-text.ts'
import { knownBy, meantBy, meantText, refuseUnknown, unknownMember } from '../base/known-members.ts'
import { checkOf } from '../http/validate.ts'
import { member, parseFieldPath } from '../query/field-path.ts'
import { compilePattern } from '../query/pattern.ts'
import { dataKeywords, judgedSchema, mapKeywords } from './record-schema.ts'

const known = knownBy(SchemaDefinition)
const check = checkOf(SchemaDefinition)
const knownField = knownBy(SchemaField)
const checkField = checkOf(SchemaField)

/** Refuses a definition that could not be enforced, naming the place. */
export function checkDefinition(definition: unknown, pointer = '/schema_definition'): void {
  if (definition === null || definition === undefined) return
  if (!isRecord(definition)) throw invalid(pointer, 'must be an object')
  refuseLarge(definition, pointer)
  if (!isRecord(definition.fields)) {
    checkJsonSchema(definition, pointer)
    return
  }
  refuseUnknown(known, definition, pointer)
  check(definition, pointer)
  checkFields(definition.fields, `${pointer}/fields`)
}

/** Each record is judged by all of it, and gets its defaults. */
function refuseLarge(definition: object, pointer: string): void {
  const { schemaValuesMax, schemaCharsMax } = limits
  if (countValues(definition, schemaValuesMax) > schemaValuesMax)
    throw invalid(pointer, `is made of more than ${schemaValuesMax} values`)
  if (JSON.stringify(definition).length > schemaCharsMax)
    throw invalid(pointer, `is longer than ${schemaCharsMax} characters`)
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
    const { validation: rule, properties: inner } = field
    if (isRecord(rule) && typeof rule.pattern === 'string')
      compilePattern(rule.pattern, `${at}/validation/pattern`)
    if (inner === undefined) continue
    if (!isRecord(inner)) throw invalid(`${at}/properties`, 'must be an object')
    for (const [key, one] of Object.entries(inner)) {
      const place = member(`${at}/properties`, key)
      refuseUnknown(knownField, one, place)
      checkField(one, place)
    }
    checkFields(inner, `${at}/properties`)
  }
}

/** Its patterns are those of queries, which end in bounded time. */
function checkJsonSchema(schema: Record<string, unknown>, pointer: string): void {
  checkKeywords(schema, pointer, true)
  if (countReferences(schema) > limits.schemaReferencesMax)
    throw invalid(pointer, `has more than ${limits.schemaReferencesMax} references`)
  try {
    Compile(judgedSchema(schema)).Check({})
  } catch (error) {
    throw new Fault('VALIDATION_FAILED', {
      message: `${pointer} cannot be used as a JSON Schema`,
      details: { field: pointer, problem: 'cannot be used as a JSON Schema' },
      cause: error,
    })
  }
}

function countReferences(part: unknown): number {
  if (typeof part !== 'object' || part === null) return 0
  const own = '$ref' in part || '$dynamicRef' in part ? 1 : 0
  return Object.values(part).reduce((sum: number, inner) => sum + countReferences(inner), own)
}

/** `isRoot`: it could as well be the other form, `{fields}`. */
function checkKeywords(part: unknown, pointer: string, isRoot = false): void {
  if (Array.isArray(part))
    for (const [at, item] of part.entries()) checkKeywords(item, `${pointer}/${at}`)
  if (!isRecord(part)) return
  for (const [name, inner] of Object.entries(part)) {
    const at = member(pointer, name)
    if (!keywords.has(name) && !name.startsWith('x-'))
      throw unknownMember(pointer, name, isRoot ? ['fields', ...keywords] : keywords)
    if (dataKeywords.includes(name) || name.startsWith('x-')) continue
    if (!mapKeywords.includes(name) || !isRecord(inner)) checkKeywords(inner, at)
    else for (const [key, one] of Object.entries(inner)) checkKeywords(one, member(at, key))
  }
  if (part.type !== undefined) checkTypes(part.type, `${pointer}/type`)
  if (typeof part.pattern === 'string') compilePattern(part.pattern, `${pointer}/pattern`)
  if (typeof part.format === 'string' && !Has(part.format))
    throw invalid(`${pointer}/format`, 'is not a format that is known')
  if (isRecord(part.patternProperties)) checkNamePatterns(part.patternProperties, pointer)
}

const keywords: ReadonlySet<string> = new Set(jsonSchemaKeywords)

function checkTypes(types: unknown, pointer: string): void {
  const list: readonly unknown[] = Array.isArray(types) ? types : [types]
  for (const type of list) {
    if (jsonTypes.some((one) => one === type)) continue
    const meant = typeof type === 'string' ? meantBy(type, jsonTypes) : undefined
    throw invalid(pointer, `must be one of ${jsonTypes.join(', ')}${meantText(meant)}`)
  }
}

function checkNamePatterns(patterns: Readonly<Record<string, unknown>>, pointer: string): void {
  for (const pattern of Object.keys(patterns)) {
    const { repeats } = compilePattern(pattern, `${pointer}/patternProperties`)
    // The names of fields are matched by JavaScript, whose time is bounded for these alone.
    if (repeats > 1)
      throw invalid(
        `${pointer}/patternProperties`,
        'may have one quantifier in a pattern, on a character or a class',
      )
  }
}
