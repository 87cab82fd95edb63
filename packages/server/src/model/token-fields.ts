import { isRecord } from '../base/is-record.ts'
import type { CollectionDefinition } from './definitions.ts'

/**
 * Adds to a collection's definition the fields whose values have tokens: those that the schema of an encrypted
 * collection declares with `index`. Such fields as it had keep their leaf; others begin at `from`.
 */
export function addTokenFields(
  definition: CollectionDefinition,
  from: number,
): CollectionDefinition {
  const { token_fields: before = [], ...others } = definition
  if (definition.encrypted !== true) return others
  const names = listIndexedFields(definition, ['index']).filter(
    (name) => name !== definition.primary_column,
  )
  if (names.length === 0) return others
  const find = (field: string) => before.find((one) => one.field === field)
  return { ...others, token_fields: names.map((field) => find(field) ?? { field, from }) }
}

/** The fields that the schema declares with one of these members. */
export function listIndexedFields(
  { schema_definition: schema }: Pick<CollectionDefinition, 'schema_definition'>,
  members: readonly ('index' | 'unique')[],
): string[] {
  const fields = isRecord(schema) && isRecord(schema.fields) ? schema.fields : {}
  return Object.entries(fields).flatMap(([name, field]) =>
    isRecord(field) && members.some((member) => field[member] === true) ? [name] : [],
  )
}
