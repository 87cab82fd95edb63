import { listConditionPaths } from '../query/condition.ts'
import type { FieldColumns } from '../query/field-column.ts'
import { parseFind } from '../query/find.ts'
import type { IndexDefinition } from './definitions.ts'

/**
 * Picks the columns of fields that no index uses, neither as its fields nor in its condition: a comparison that reads a
 * column is not one that an index serves.
 */
export function filterUnindexed(
  columns: FieldColumns | undefined,
  indexes: readonly IndexDefinition[],
): FieldColumns | undefined {
  if (columns === undefined || columns.size === 0) return undefined
  const used = listUsedFields(indexes)
  return new Map([...columns].filter(([field]) => !used.has(field)))
}

/** The fields of lists of indexes; each read of a collection asks for them. */
const listed = new WeakMap<readonly IndexDefinition[], ReadonlySet<string>>()

function listUsedFields(indexes: readonly IndexDefinition[]): ReadonlySet<string> {
  const known = listed.get(indexes)
  if (known !== undefined) return known
  const used = new Set(
    indexes.flatMap(({ fields, where }) =>
      where === undefined ? fields : [...fields, ...listConditionPaths(parseFind(where, '/where'))],
    ),
  )
  listed.set(indexes, used)
  return used
}
