import type { Condition } from './condition.ts'

/**
 * Finds the primary keys that a condition states, as texts: no record with another key can match it. Undefined where
 * it states none.
 */
export function findStatedKeys(
  where: Condition,
  primaryColumn: string,
): readonly string[] | undefined {
  const conjuncts = where.kind === 'all' ? where.conditions : [where]
  for (const condition of conjuncts) {
    if (condition.kind !== 'one-of' || condition.path.join('.') !== primaryColumn) continue
    const isExact = condition.values.every(
      (value) => typeof value === 'string' || Number.isSafeInteger(value),
    )
    if (isExact) return condition.values.map(String)
  }
  return undefined
}
