import type { Condition, Scalar } from './condition.ts'

/**
 * Finds the primary keys that a condition states, as texts: no record with another key can match it. Undefined where
 * it states none.
 */
export function findStatedKeys(
  where: Condition,
  primaryColumn: string,
): readonly string[] | undefined {
  const isExact = (value: Scalar) => typeof value === 'string' || Number.isSafeInteger(value)
  const stated = listStated(where, primaryColumn).find((values) => values.every(isExact))
  return stated?.map(String)
}

/** Finds the values of a field that a condition states: no record with another value can match it. */
export function findStatedValues(where: Condition, field: string): readonly Scalar[] | undefined {
  return listStated(where, field)[0]
}

function listStated(where: Condition, field: string): (readonly Scalar[])[] {
  const conjuncts = where.kind === 'all' ? where.conditions : [where]
  return conjuncts.flatMap((condition) =>
    condition.kind === 'one-of' && condition.path.join('.') === field ? [condition.values] : [],
  )
}
