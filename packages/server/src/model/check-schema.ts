import { limits } from '@tollbase/contract/limits'
import {
  jsonSchemaKeywords,
  jsonTypes,
  SchemaDefinition,
  SchemaField,
} from '@tollbase/contract/schema-definition'
import { Has } from 'typebox/format'
import { Compile, NextStack, Resolve, Stack } from 'typebox/schema'
import { countValues } from '../base/count-values.ts'
import { Fault, makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { checkStorable } from '../base/json-text.ts'
import {
  findSuggestion,
  formatSuggestion,
  makeUnknownMemberFault,
  refuseUnknown,
  toKnownMembers,
} from '../base/known-members.ts'
import { compileCheck } from '../http/validate.ts'
import { extendPointer, parseFieldPath } from '../query/field-path.ts'
import { compilePattern } from '../query/pattern.ts'
import {
  compileRecordSchema,
  countSearched,
  dataKeywords,
  mapKeywords,
  toValidationSchema,
} from './record-schema.ts'

const known = toKnownMembers(SchemaDefinition)
const check = compileCheck(SchemaDefinition)
const knownField = toKnownMembers(SchemaField)
const checkField = compileCheck(SchemaField)

/** Refuses a definition that could not be enforced, naming the place. */
export function checkSchemaDefinition(definition: unknown, pointer = '/schema_definition'): void {
  if (definition === null || definition === undefined) return
  if (!isRecord(definition)) throw makeInvalidFault(pointer, 'must be an object')
  refuseLarge(definition, pointer)
  if (!isRecord(definition.fields)) {
    checkJsonSchema(definition, pointer)
    return
  }
  refuseUnknown(known, definition, pointer)
  check(definition, pointer)
  checkFields(definition.fields, `${pointer}/fields`)
  refuseBadDefaults(definition.fields, `${pointer}/fields`)
}

/** A default is put into records that were judged without it, so it must be what a record may hold. */
function refuseBadDefaults(fields: Readonly<Record<string, unknown>>, pointer: string): void {
  for (const [name, field] of Object.entries(fields)) {
    if (!isRecord(field) || field.default === undefined) continue
    const { problems } = compileRecordSchema({ fields: { [name]: field } })
    const [found] = problems({ [name]: field.default })
    if (found !== undefined)
      throw makeInvalidFault(
        `${extendPointer(pointer, name)}/default`,
        `${found.problem}, as its field says`,
      )
  }
}

/** Each record is judged by all of it, and gets its defaults. */
function refuseLarge(definition: object, pointer: string): void {
  const { schemaValuesMax, schemaCharsMax } = limits
  if (countValues(definition, schemaValuesMax) > schemaValuesMax)
    throw makeInvalidFault(pointer, `is made of more than ${schemaValuesMax} values`)
  if (JSON.stringify(definition).length > schemaCharsMax)
    throw makeInvalidFault(pointer, `is longer than ${schemaCharsMax} characters`)
}

function checkFields(fields: Readonly<Record<string, unknown>>, pointer: string): void {
  for (const [name, field] of Object.entries(fields)) {
    const at = extendPointer(pointer, name)
    if (!isRecord(field)) throw makeInvalidFault(at, 'must be an object')
    // Indexed and defaulted fields are read again when the log is applied, where nothing can be refused any more.
    if (field.index === true || field.unique === true) parseFieldPath(name, at)
    if (field.default !== undefined) {
      checkStorable(name, at)
      checkStorable(field.default, `${at}/default`)
    }
    const { validation: rule, properties: inner } = field
    if (isRecord(rule) && typeof rule.pattern === 'string')
      compilePattern(rule.pattern, `${at}/validation/pattern`)
    if (inner === undefined) continue
    if (!isRecord(inner)) throw makeInvalidFault(`${at}/properties`, 'must be an object')
    for (const [key, one] of Object.entries(inner)) {
      const place = extendPointer(`${at}/properties`, key)
      refuseUnknown(knownField, one, place)
      checkField(one, place)
    }
    checkFields(inner, `${at}/properties`)
  }
}

/** Checks a JSON Schema. Its patterns are those of queries, which end in bounded time. */
function checkJsonSchema(schema: Record<string, unknown>, pointer: string): void {
  checkKeywords(schema, pointer, true)
  checkReferences(schema, pointer)
  try {
    Compile(toValidationSchema(schema)).Check({})
  } catch (error) {
    throw new Fault('VALIDATION_FAILED', {
      message: `${pointer} cannot be used as a JSON Schema`,
      details: { field: pointer, problem: 'cannot be used as a JSON Schema' },
      cause: error,
    })
  }
}

/** A reference that points to nothing would refuse every record. */
function checkReferences(schema: Record<string, unknown>, pointer: string): void {
  const references = listReferences(schema, { pointer, scope: Stack({}, schema) })
  if (references.length > limits.schemaReferencesMax)
    throw makeInvalidFault(pointer, `has more than ${limits.schemaReferencesMax} references`)
  if (references.length * countSearched(schema, limits.schemaSearchMax) > limits.schemaSearchMax)
    throw makeInvalidFault(
      pointer,
      'is too large to look for its references in; have fewer values, references, or lists in lists (as anyOf in anyOf)',
    )
  for (const { at, isDangling } of references)
    if (isDangling())
      throw makeInvalidFault(
        at,
        'points to nothing in this schema; a part under $defs is "#/$defs/<its name>"',
      )
}

type Reference = { readonly at: string; readonly isDangling: () => boolean }

/** The scope is what the `$id`s around a part make of its references. The members of a map have names of the caller's. */
type Place = {
  readonly pointer: string
  readonly scope: ReturnType<typeof Stack>
  readonly isMap?: boolean
}

function listReferences(part: unknown, place: Place): readonly Reference[] {
  const { pointer, scope, isMap = false } = place
  if (Array.isArray(part))
    return part.flatMap((item, at) => listReferences(item, { scope, pointer: `${pointer}/${at}` }))
  if (!isRecord(part)) return []
  const inside = isMap ? scope : NextStack(scope, part)
  return Object.entries(part).flatMap(([name, inner]): readonly Reference[] => {
    const at = extendPointer(pointer, name)
    if (!isMap && (dataKeywords.includes(name) || name.startsWith('x-'))) return []
    if (isMap || !(name === '$ref' || name === '$dynamicRef'))
      return listReferences(inner, {
        ...{ pointer: at, scope: inside },
        isMap: !isMap && mapKeywords.includes(name),
      })
    if (typeof inner !== 'string') throw makeInvalidFault(at, 'must be text, as "#/$defs/city"')
    const isDangling = () => findTarget(inside, name, inner) === undefined
    return [{ at, isDangling }]
  })
}

function findTarget(scope: Place['scope'], keyword: string, reference: string): unknown {
  try {
    return keyword === '$ref'
      ? Resolve.Ref(scope, { $ref: reference }).schema
      : Resolve.DynamicRef(scope, { $dynamicRef: reference })
  } catch {
    // It is no URI, as "#/%".
    return undefined
  }
}

/** `isRoot`: the definition may have been meant in the other form, `{fields}`. */
function checkKeywords(part: unknown, pointer: string, isRoot = false): void {
  if (Array.isArray(part))
    for (const [at, item] of part.entries()) checkKeywords(item, `${pointer}/${at}`)
  if (!isRecord(part)) return
  for (const [name, inner] of Object.entries(part)) {
    const at = extendPointer(pointer, name)
    if (!keywords.has(name) && !name.startsWith('x-'))
      throw makeUnknownMemberFault(pointer, name, isRoot ? ['fields', ...keywords] : keywords)
    if (dataKeywords.includes(name) || name.startsWith('x-')) continue
    if (!mapKeywords.includes(name) || !isRecord(inner)) checkKeywords(inner, at)
    else for (const [key, one] of Object.entries(inner)) checkKeywords(one, extendPointer(at, key))
  }
  if (part.type !== undefined) checkTypes(part.type, `${pointer}/type`)
  if (typeof part.pattern === 'string') compilePattern(part.pattern, `${pointer}/pattern`)
  if (typeof part.format === 'string' && !Has(part.format))
    throw makeInvalidFault(`${pointer}/format`, 'is not a format that is known')
  if (isRecord(part.patternProperties)) checkNamePatterns(part.patternProperties, pointer)
}

const keywords: ReadonlySet<string> = new Set(jsonSchemaKeywords)

function checkTypes(types: unknown, pointer: string): void {
  const list: readonly unknown[] = Array.isArray(types) ? types : [types]
  for (const type of list) {
    if (jsonTypes.some((one) => one === type)) continue
    const meant = typeof type === 'string' ? findSuggestion(type, jsonTypes) : undefined
    throw makeInvalidFault(
      pointer,
      `must be one of ${jsonTypes.join(', ')}${formatSuggestion(meant)}`,
    )
  }
}

function checkNamePatterns(patterns: Readonly<Record<string, unknown>>, pointer: string): void {
  for (const pattern of Object.keys(patterns)) {
    const { repeats } = compilePattern(pattern, `${pointer}/patternProperties`)
    // The names of fields are matched by JavaScript, whose time is bounded for these alone.
    if (repeats > 1)
      throw makeInvalidFault(
        `${pointer}/patternProperties`,
        'may have one quantifier in a pattern, on a character or a class',
      )
  }
}
