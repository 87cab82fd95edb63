import { coerceTo, makeComparison } from '../tree/make-expression.ts'
import type { Expression } from '../tree/query.ts'
import type { CallPlace } from './coerce-arguments.ts'
import { makeCall } from './read-call.ts'
import {
  type MergedColumn,
  NameProblem,
  resolveUnqualified,
  type Scope,
  UnclearName,
} from './scope.ts'

type Sides = {
  readonly left: Scope
  readonly right: Scope
  readonly kind: 'INNER' | 'LEFT' | 'RIGHT' | 'FULL'
}

/** Reads the columns of USING: the condition that they come to, and what each of their names means behind it. */
export function joinUsing(
  names: readonly string[],
  sides: Sides,
  at: CallPlace,
): { readonly on: Expression | undefined; readonly merged: readonly MergedColumn[] } {
  const { left, right, kind } = sides
  const covers = new Set([...left.relations, ...right.relations].map(({ id }) => id))
  const pairs = names.flatMap((name) => {
    const [a, b] = [findColumn(name, left, at), findColumn(name, right, at)]
    if (a === undefined || b === undefined) return []
    const test = coerceTo(makeComparison('=', { left: a, right: b }), 'boolean')
    const expression = kind === 'FULL' ? makeCall('coalesce', [a, b], at) : kind === 'RIGHT' ? b : a
    return [{ test, merged: { name, expression, covers } }]
  })
  const tests = pairs.map(({ test }) => test)
  const [only] = tests
  return {
    on:
      only === undefined || tests.length === 1
        ? only
        : Object.freeze({ kind: 'and', type: 'boolean', arguments: Object.freeze(tests) }),
    merged: pairs.map(({ merged }) => merged),
  }
}

/** Finds a column of one side; undefined where that is left open. */
function findColumn(name: string, scope: Scope, { place }: CallPlace): Expression | undefined {
  try {
    const found = resolveUnqualified([name], scope)
    if (found === undefined) throw new NameProblem(`USING of ${name}, which one side has not`)
    return found
  } catch (error) {
    if (error instanceof UnclearName && place.reader.leavesOpen) return undefined
    throw error
  }
}

/**
 * Lists the names that both sides have, which NATURAL joins by, in the order of the left side. `isOpen`: fields are not
 * known yet, so the condition is left out.
 */
export function listShared({ left, right }: Sides, isOpen: boolean): readonly string[] {
  if (isOpen) return []
  const others = new Set(listColumns(right))
  return listColumns(left).filter((name) => others.has(name))
}

function listColumns({ relations, merged = [] }: Scope): readonly string[] {
  const open = relations.find(({ hasRecord, types }) => hasRecord && (types?.size ?? 0) === 0)
  if (open !== undefined)
    throw new NameProblem(
      `NATURAL JOIN of ${open.name}, whose fields are not declared; write USING (…)`,
    )
  const names = relations.flatMap(({ columns, types }) => [
    ...columns.map(({ name }) => name),
    ...[...(types?.keys() ?? [])].filter((name) => !name.includes('.')),
  ])
  return [...new Set([...merged.map(({ name }) => name), ...names])]
}

/** Puts the columns that a join merges in the place of those that joins inside it merged. */
export function keepOthers(
  inner: readonly MergedColumn[],
  own: readonly MergedColumn[],
): readonly MergedColumn[] {
  const names = new Set(own.map(({ name }) => name))
  return [...own, ...inner.filter(({ name }) => !names.has(name))]
}
