import { isRecord } from '../base/is-record.ts'
import type { ValueType } from '../query/tree/query.ts'
import { toValueType } from './field-types.ts'

/** The depth to which declarations of fields inside fields are followed. */
const depthMax = 16

/** The types that a schema_definition declares of fields, by dotted name, as far as SQL knows them. */
export function getDeclaredTypes(definition: unknown): ReadonlyMap<string, ValueType> {
  const types = new Map<string, ValueType>()
  if (!isRecord(definition)) return types
  if (isRecord(definition.fields)) addTypes(types, { fields: definition.fields, prefix: '' })
  else addTypes(types, { fields: definition.properties, prefix: '' })
  return types
}

type Declared = { readonly fields: unknown; readonly prefix: string; readonly depth?: number }

function addTypes(types: Map<string, ValueType>, { fields, prefix, depth = 0 }: Declared): void {
  if (!isRecord(fields) || depth > depthMax) return
  for (const [name, field] of Object.entries(fields)) {
    if (!isRecord(field)) continue
    const type = toValueType(field)
    if (type !== undefined) types.set(prefix + name, type)
    addTypes(types, { fields: field.properties, prefix: `${prefix}${name}.`, depth: depth + 1 })
  }
}
