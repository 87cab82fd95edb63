import { limits } from '@tollbase/contract/limits'
import type { GroupingSet, Node } from 'libpg-query'
import { countSteps } from '../steps.ts'
import { makeExpressionKey } from '../tree/expression-key.ts'
import {
  type Column,
  type Expression,
  listParts,
  listRelations,
  type Relation,
  type SelectQuery,
} from '../tree/query.ts'
import { findUngroupedPart, Groups, hasAggregate, isOuterOnly } from './grouping.ts'
import { toTyped } from './read-columns.ts'
import { findLocation, readExpression, toStored } from './read-expression.ts'
import { findOutput } from './read-set.ts'
import { NameProblem, resolveUnqualified } from './scope.ts'
import { findFirstLocation, refuse, type SqlPlace } from './sql-reader.ts'

type Aggregate = Extract<Expression, { kind: 'aggregate' }>

export type GroupClause = Pick<SelectQuery, 'groupBy' | 'groupingSets'>

/** Reads GROUP BY: what is grouped by, and the sets of it by which ROLLUP, CUBE and GROUPING SETS group in turn. */
export function readGroups(
  nodes: readonly Node[],
  columns: readonly Column[],
  place: SqlPlace,
): GroupClause {
  const groupBy: Expression[] = []
  const places = new Map<string, number>()
  const add = (node: Node): number => {
    const column = columns[findOutput(node, columns, place) ?? -1]
    if (column !== undefined && 'ColumnRef' in node && !place.reader.isStored)
      refuseTwofold(node, column, place)
    if (column !== undefined && hasAggregate(column.expression))
      throw refuse(place, findLocation(node), 'an aggregate in GROUP BY')
    const expression = toTyped(toStored(column?.expression ?? readExpression(node, place)))
    const key = makeExpressionKey(expression)
    const at = places.get(key) ?? groupBy.push(expression) - 1
    if (at >= limits.sqlColumnsMax && !place.reader.isStored)
      throw refuse(
        place,
        findLocation(node),
        `GROUP BY of more than ${limits.sqlColumnsMax} things`,
      )
    places.set(key, at)
    return at
  }
  const lists = nodes.map((node) => listSets(node, { add, place }))
  if (!nodes.some((node) => 'GroupingSet' in node)) return { groupBy: Object.freeze(groupBy) }
  const groupingSets = lists.reduce<Sets>(
    (sets, list) => requireFew(crossed(sets, list), nodes, place),
    [[]],
  )
  return { groupBy: Object.freeze(groupBy), groupingSets }
}

/**
 * Refuses a name in GROUP BY that is a column's and, in another meaning, that of a field: PostgreSQL would group by the
 * field. A field that is not declared is one where the column is made of it.
 */
function refuseTwofold(node: Node, { name, expression }: Column, place: SqlPlace): void {
  const field = findField(name, place)
  if (field === undefined || makeExpressionKey(field) === makeExpressionKey(expression)) return
  if (field.kind === 'field' && !usesField(expression, makeExpressionKey(field))) return
  throw refuse(
    place,
    findLocation(node),
    `GROUP BY ${name}, which is a column and a field; write its number for the column, as in GROUP BY 1, or the field with its relation`,
  )
}

function findField(name: string, { scope }: SqlPlace): Expression | undefined {
  try {
    return resolveUnqualified([name], scope)
  } catch (error) {
    if (error instanceof NameProblem) return undefined
    throw error
  }
}

function usesField(expression: Expression, key: string): boolean {
  return (
    makeExpressionKey(expression) === key ||
    listParts(expression).some((part) => usesField(part, key))
  )
}

type Sets = readonly (readonly number[])[]
type Adding = { readonly add: (node: Node) => number; readonly place: SqlPlace }

/** Lists the sets that one part of GROUP BY stands for: a plain expression for one. */
function listSets(node: Node, adding: Adding): Sets {
  return 'GroupingSet' in node ? listSetsOf(node.GroupingSet, adding) : [listUnit(node, adding)]
}

function listSetsOf({ kind, content = [], location }: GroupingSet, adding: Adding): Sets {
  const { place } = adding
  switch (kind) {
    case 'GROUPING_SET_ROLLUP': {
      const units = content.map((each) => listUnit(each, adding))
      return [...units.keys(), units.length].toReversed().map((end) => units.slice(0, end).flat())
    }
    case 'GROUPING_SET_CUBE': {
      const units = content.map((each) => listUnit(each, adding))
      return units.reduce<Sets>(
        (sets, unit) =>
          requireFew(
            sets.flatMap((set) => [[...set, ...unit], set]),
            content,
            place,
          ),
        [[]],
      )
    }
    case 'GROUPING_SET_SETS':
      return requireFew(
        content.flatMap((each) => listSets(each, adding)),
        content,
        place,
      )
    case 'GROUPING_SET_EMPTY':
      return [[]]
    default:
      throw refuse(place, location, 'grouping sets of this kind, which are not possible')
  }
}

/** Lists the places of what stands together: `(a, b)`, or one expression alone. */
function listUnit(node: Node, { add }: Adding): readonly number[] {
  return 'RowExpr' in node ? (node.RowExpr.args ?? []).map(add) : [add(node)]
}

function crossed(left: Sets, right: Sets): Sets {
  return left.flatMap((one) =>
    right.map((other) => {
      countSteps(one.length + other.length)
      return [...new Set([...one, ...other])]
    }),
  )
}

function requireFew(sets: Sets, nodes: readonly Node[], place: SqlPlace): Sets {
  if (sets.length > limits.sqlGroupingSetsMax)
    throw refuse(
      place,
      findFirstLocation(nodes),
      `more than ${limits.sqlGroupingSetsMax} grouping sets`,
    )
  return sets
}

/**
 * Completes the groups of a query, or refuses what it uses beside them: a record is grouped by all of its fields where
 * it is grouped by the one that names it.
 */
export function extendGroups(
  { groupBy, groupingSets }: GroupClause,
  { from, used }: Pick<SelectQuery, 'from'> & { readonly used: readonly Expression[] },
  place: SqlPlace,
): GroupClause {
  const own = new Set(listRelations(from).map((relation) => relation.id))
  // Versions of PostgreSQL differ in which of its values are NULL there.
  const isOuter = groupingSets !== undefined && groupBy.some((each) => isOuterOnly([each], own))
  if (isOuter && !place.reader.isStored)
    throw refuse(place, undefined, "an outer query's field in a grouping set")
  const groups = new Groups(groupBy)
  const named = groupingSets === undefined ? listNamed(groupBy, from, place) : new Set()
  const fields: Expression[] = []
  for (const expression of used) {
    for (;;) {
      const part = findUngroupedPart(expression, own, groups)
      if (part === undefined) break
      if (part.kind === 'field' && named.has(part.relation)) {
        groups.add(part)
        fields.push(part)
        continue
      }
      const name = part.kind === 'field' ? part.path.join('.') : 'a column'
      throw refuse(place, undefined, `${name}, which is neither in GROUP BY nor in an aggregate`)
    }
    for (const aggregate of aggregatesIn(expression)) {
      if (isOuterOnly(listParts(aggregate), own))
        throw refuse(place, undefined, `${aggregate.name} of nothing but an outer query's fields`)
    }
  }
  return { groupBy: [...groupBy, ...fields], ...(groupingSets && { groupingSets }) }
}

/** Lists the relations whose records the groups tell apart. */
function listNamed(
  groupBy: readonly Expression[],
  from: readonly Relation[],
  place: SqlPlace,
): ReadonlySet<number> {
  const relations = listRelations(from).filter((relation) => {
    const name = relation.kind === 'collection' ? place.reader.primaryOf(relation.model) : undefined
    return groupBy.some(
      (each) =>
        each.kind === 'field' && each.relation === relation.id && each.path.join('.') === name,
    )
  })
  return new Set(relations.map(({ id }) => id))
}

function aggregatesIn(expression: Expression): readonly Aggregate[] {
  const own = expression.kind === 'aggregate' ? [expression] : []
  return [...own, ...listParts(expression).flatMap(aggregatesIn)]
}
