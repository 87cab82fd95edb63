import { conditionPaths, dataSetNames, referencedPaths } from '../condition.ts'
import type { SourceUse } from '../join.ts'
import {
  type Expression,
  partsOf,
  type Query,
  queryOf,
  type Relation,
  relationsOf,
  type SelectQuery,
} from './query.ts'

type Use = 'filter' | 'sort' | 'select'
type Fields = { filter: Set<string>; sort: Set<string>; select: Set<string>; whole: boolean }
type Found = { readonly model: string; readonly fields: Fields; readonly dataSets: Set<string> }

/**
 * Every use of a collection in a query, in the order of FROM, with the fields that are used. Fields of join
 * conditions, of GROUP BY and inside aggregates of HAVING count as filtered by; those of columns as given.
 */
export function sourcesOfQuery(query: Query): readonly SourceUse[] {
  const found = new Map<number, Found>()
  visitQuery(query, found, false)
  const kind = isRowQuery(query) ? 'rows' : 'derived'
  return [...new Set(found.values())].map(({ model, fields, dataSets }) => ({
    model,
    kind,
    dataSets: [...dataSets],
    used: {
      filter: [...fields.filter],
      sort: [...fields.sort],
      select: fields.whole ? 'all' : [...fields.select],
    },
  }))
}

/** Whether a query gives rows of one collection one by one, each made of nothing but its own record. */
export function isRowQuery(query: Query): boolean {
  if (query.kind !== 'select' || query.with.length > 0 || query.distinct || query.grouped)
    return false
  const [only, ...others] = query.from
  if (others.length > 0 || only?.kind !== 'collection') return false
  return !expressionsIn(query).some(([expression]) => isDerived(expression))
}

function isDerived(expression: Expression): boolean {
  const own = expression.kind === 'window' || queryOf(expression) !== undefined
  return own || partsOf(expression).some(isDerived)
}

/** A query's own expressions, each with what it is used for. */
export function expressionsIn(query: SelectQuery): readonly (readonly [Expression, Use])[] {
  const filters = [query.where, query.having, ...joinTests(query.from), ...query.groupBy]
  return [
    ...filters.flatMap((each) => (each === undefined ? [] : [[each, 'filter'] as const])),
    ...query.columns.map((column) => [column.expression, 'select'] as const),
    ...query.orderBy.map((order) => [order.expression, 'sort'] as const),
  ]
}

function joinTests(from: readonly Relation[]): readonly (Expression | undefined)[] {
  return from.flatMap((relation) =>
    relation.kind === 'join' ? [relation.on, ...joinTests([relation.left, relation.right])] : [],
  )
}

function visitQuery(query: Query, found: Map<number, Found>, isInner: boolean): void {
  for (const table of query.with) {
    visitQuery(table.query, found, true)
    lend(found, { from: table.query, to: tableKey(table.id) })
  }
  if (query.kind === 'set') {
    visitQuery(query.left, found, true)
    visitQuery(query.right, found, true)
    return
  }
  for (const relation of relationsOf(query.from)) visitRelation(relation, found)
  for (const id of query.records) {
    const fields = found.get(id)?.fields
    if (fields !== undefined) fields.whole = true
  }
  for (const [expression, use] of expressionsIn(query)) {
    // What a sub-query gives can be filtered and sorted by around it, under another name.
    const uses: readonly Use[] = isInner && use === 'select' ? ['select', 'filter', 'sort'] : [use]
    for (const each of uses) visit(expression, each, found)
  }
}

function visitRelation(
  relation: ReturnType<typeof relationsOf>[number],
  found: Map<number, Found>,
): void {
  switch (relation.kind) {
    case 'collection': {
      found.set(relation.id, newlyFound(relation.model))
      return
    }
    case 'query':
      visitQuery(relation.query, found, true)
      lend(found, { from: relation.query, to: relation.id })
      return
    case 'common': {
      const table = found.get(tableKey(relation.table))
      if (table !== undefined) found.set(relation.id, table)
    }
  }
}

/** Common tables have ids of their own, beside those of relations. */
function tableKey(id: number): number {
  return -id
}

/** Fields of a record that a sub-query passes on are fields of the collection that it comes from. */
function lend(
  found: Map<number, Found>,
  { from, to }: { readonly from: Query; readonly to: number },
): void {
  const [record] = from.kind === 'select' ? from.records : []
  const origin = record === undefined ? undefined : found.get(record)
  if (origin !== undefined) found.set(to, origin)
}

function newlyFound(model: string): Found {
  const fields = { filter: new Set<string>(), sort: new Set<string>(), select: new Set<string>() }
  return { model, fields: { ...fields, whole: false }, dataSets: new Set() }
}

function visit(expression: Expression, use: Use, found: Map<number, Found>): void {
  if (expression.kind === 'field')
    found.get(expression.relation)?.fields[use].add(expression.path.join('.'))
  if (expression.kind === 'record') {
    const fields = found.get(expression.relation)?.fields
    if (fields !== undefined) fields.whole = true
  }
  if (expression.kind === 'condition') {
    const { relation, parent, condition } = expression
    for (const path of conditionPaths(condition)) found.get(relation)?.fields.filter.add(path)
    for (const name of dataSetNames(condition)) found.get(relation)?.dataSets.add(name)
    if (parent !== undefined)
      for (const path of referencedPaths(condition)) found.get(parent)?.fields.filter.add(path)
  }
  const query = queryOf(expression)
  if (query !== undefined) visitQuery(query, found, true)
  for (const part of partsOf(expression)) if (!isCounted(part, expression)) visit(part, use, found)
}

/** How many records there are tells nothing of what is in them. */
function isCounted(part: Expression, by: Expression): boolean {
  return part.kind === 'record' && by.kind === 'aggregate' && by.name === 'count' && !by.distinct
}
