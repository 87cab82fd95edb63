import { limits } from '@tollbase/contract/limits'
import type { IndexDefinition } from './definitions.ts'

/** Makes the default name of an index: `{collection}_{fields}_idx`, with a number appended where that is taken. */
export function makeIndexName(
  collection: { readonly name: string },
  fields: readonly string[],
  others: readonly Pick<IndexDefinition, 'name'>[],
): string {
  const base = `${collection.name}_${fields.join('_')}_idx`.slice(0, limits.nameCharsMax)
  const taken = new Set(others.map(({ name }) => name))
  let name = base
  for (let next = 2; taken.has(name); next++) name = `${base}_${next}`
  return name
}
