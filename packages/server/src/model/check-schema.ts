import { limits } from '@tollbase/contract/limits'
import { SchemaDefinition, SchemaField } from '@tollbase/contract/schema-definition'
import { awaitTurn } from '../base/await-turn.ts'
import { countValues } from '../base/count-values.ts'
import { makeInvalidFault } from '../base/fault.ts'
import { isRecord } from '../base/is-record.ts'
import { checkStorable } from '../base/json-text.ts'
import { refuseUnknown, toKnownMembers } from '../base/known-members.ts'
import { compileCheck } from '../http/validate.ts'
import { extendPointer, parseFieldPath } from '../query/field-path.ts'
import { checkJsonSchema, PatternChecks } from './json-schema/check-definition.ts'
import { Work } from './json-schema/work.ts'
import { compileRecordSchema, toPointer } from './record-schema.ts'

const known = toKnownMembers(SchemaDefinition)
const check = compileCheck(SchemaDefinition)
const knownField = toKnownMembers(SchemaField)
const checkField = compileCheck(SchemaField)

/** Refuses a definition that could not be enforced, naming the place. Other requests have their turns meanwhile. */
export async function checkSchemaDefinition(
  definition: unknown,
  pointer = '/schema_definition',
): Promise<void> {
  if (definition === null || definition === undefined) return
  if (!isRecord(definition)) throw makeInvalidFault(pointer, 'must be an object')
  refuseLarge(definition, pointer)
  if (!isRecord(definition.fields)) {
    await checkJsonSchema(definition, pointer)
    return
  }
  refuseUnknown(known, definition, pointer)
  check(definition, pointer)
  await awaitTurn()
  checkFields(definition.fields, `${pointer}/fields`, new PatternChecks())
  refuseBadDefaults(definition.fields, `${pointer}/fields`)
  await awaitTurn()
}

/** A default is put into records that were judged without it, so it must be what a record may hold. */
function refuseBadDefaults(fields: Readonly<Record<string, unknown>>, pointer: string): void {
  const { listProblems, defaults } = compileRecordSchema({ fields })
  const problems = new Map(
    listProblems(defaults, new Work()).map(({ pointer, problem }) => [pointer, problem]),
  )
  for (const name of Object.keys(defaults)) {
    const problem = problems.get(toPointer(name))
    if (problem !== undefined)
      throw makeInvalidFault(
        `${extendPointer(pointer, name)}/default`,
        `${problem}, as its field says`,
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

function checkFields(
  fields: Readonly<Record<string, unknown>>,
  pointer: string,
  patterns: PatternChecks,
): void {
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
      patterns.check(rule.pattern, `${at}/validation/pattern`)
    if (inner === undefined) continue
    if (!isRecord(inner)) throw makeInvalidFault(`${at}/properties`, 'must be an object')
    for (const [key, one] of Object.entries(inner)) {
      const place = extendPointer(`${at}/properties`, key)
      refuseUnknown(knownField, one, place)
      checkField(one, place)
    }
    checkFields(inner, `${at}/properties`, patterns)
  }
}
