import { listConditionPaths, listDataSetNames, listReferencedPaths } from '../condition.ts'
import type { SourceUse } from '../join.ts'
import {
  type Expression,
  findSubQuery,
  listParts,
  listRelations,
  type Query,
  type Relation,
  type SelectQuery,
} from './query.ts'

const uses = ['filter', 'sort', 'select'] as const
type Use = (typeof uses)[number]
type Fields = { filter: Set<string>; sort: Set<string>; select: Set<string>; whole: boolean }
type FoundSource = {
  readonly model: string
  readonly fields: Fields
  readonly dataSets: Set<string>
}

type Found = {
  /** The sources of each relation's records: of several, where a set operation gives records whole. */
  readonly sources: Map<number, readonly FoundSource[]>
  /** The sub-queries in expressions, which are visited once: one inside the other would take time without end. */
  readonly visited: Set<Query>
}

/**
 * Collects every use of a collection in a query, in the order of FROM, with the fields that are used. Fields of
 * join conditions, of GROUP BY and inside aggregates of HAVING count as filtered by; those of columns as given.
 */
export function collectQuerySources(query: Query): readonly SourceUse[] {
  const found: Found = { sources: new Map(), visited: new Set() }
  visitQuery(query, found, false)
  const kind = isRowQuery(query) ? 'rows' : 'derived'
  return [...new Set([...found.sources.values()].flat())].map(({ model, fields, dataSets }) => ({
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

/** Returns true if a query gives rows of one collection one by one, each made of nothing but its own record. */
export function isRowQuery(query: Query): boolean {
  if (query.kind !== 'select' || query.with.length > 0 || query.distinct || query.grouped)
    return false
  const [only, ...others] = query.from
  if (others.length > 0 || only?.kind !== 'collection') return false
  return !listExpressions(query).some(([expression]) => isDerived(expression))
}

function isDerived(expression: Expression): boolean {
  const own = expression.kind === 'window' || findSubQuery(expression) !== undefined
  return own || listParts(expression).some(isDerived)
}

/** Lists a query's own expressions, each with its use. */
export function listExpressions(query: SelectQuery): readonly (readonly [Expression, Use])[] {
  const filters = [query.where, query.having, ...joinTests(query.from), ...query.groupBy]
  // Rows that a function makes of a value tell it, and the query may filter and sort by them.
  const given = listRelations(query.from).flatMap((each) =>
    each.kind === 'function' ? each.arguments : [],
  )
  return [
    ...given.flatMap((each) => uses.map((use) => [each, use] as const)),
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

function visitQuery(query: Query, found: Found, isInner: boolean): void {
  for (const table of query.with) {
    visitQuery(table.query, found, true)
    passOn(found, { from: table.query, to: tableKey(table.id) })
  }
  if (query.kind === 'set') {
    visitQuery(query.left, found, true)
    visitQuery(query.right, found, true)
    passOn(found, { from: query, to: query.id })
    for (const { expression } of query.orderBy) visit(expression, 'sort', found)
    return
  }
  for (const relation of listRelations(query.from)) visitRelation(relation, found)
  for (const id of query.records) useWhole(id, found)
  for (const [expression, use] of listExpressions(query)) {
    // The query around a sub-query can filter and sort by its columns, under another name.
    const all: readonly Use[] = isInner && use === 'select' ? uses : [use]
    for (const each of all) visit(expression, each, found)
  }
}

function visitRelation(relation: ReturnType<typeof listRelations>[number], found: Found): void {
  switch (relation.kind) {
    case 'collection': {
      found.sources.set(relation.id, [makeFoundSource(relation.model)])
      return
    }
    case 'query':
      visitQuery(relation.query, found, true)
      passOn(found, { from: relation.query, to: relation.id })
      return
    case 'common': {
      const table = found.sources.get(tableKey(relation.table))
      if (table !== undefined) found.sources.set(relation.id, table)
    }
  }
}

/** Returns a key for common tables, whose ids are apart from those of relations. */
function tableKey(id: number): number {
  return -id
}

/**
 * Lets a relation share the origin of the records that its sub-query passes on: their fields are the collection's.
 */
function passOn(found: Found, { from, to }: { readonly from: Query; readonly to: number }): void {
  const origins = listOrigins(from, found)
  if (origins.length > 0) found.sources.set(to, origins)
}

function listOrigins(query: Query, found: Found): readonly FoundSource[] {
  if (query.kind === 'set')
    return query.isOfRecords === true
      ? [...listOrigins(query.left, found), ...listOrigins(query.right, found)]
      : []
  const [record] = query.records
  return record === undefined ? [] : (found.sources.get(record) ?? [])
}

function makeFoundSource(model: string): FoundSource {
  const fields = { filter: new Set<string>(), sort: new Set<string>(), select: new Set<string>() }
  return { model, fields: { ...fields, whole: false }, dataSets: new Set() }
}

function visit(expression: Expression, use: Use, found: Found): void {
  if (expression.kind === 'field') add(found, expression.relation, [use, expression.path.join('.')])
  if (expression.kind === 'record') useWhole(expression.relation, found)
  if (expression.kind === 'condition') {
    const { relation, parent, condition } = expression
    for (const path of listConditionPaths(condition)) add(found, relation, ['filter', path])
    for (const name of listDataSetNames(condition))
      for (const { dataSets } of found.sources.get(relation) ?? []) dataSets.add(name)
    if (parent !== undefined)
      for (const path of listReferencedPaths(condition)) add(found, parent, ['filter', path])
  }
  const query = findSubQuery(expression)
  if (query !== undefined && !found.visited.has(query)) {
    found.visited.add(query)
    visitQuery(query, found, true)
  }
  for (const part of listParts(expression))
    if (!isCounted(part, expression)) visit(part, use, found)
}

function add(found: Found, relation: number, [use, path]: readonly [Use, string]): void {
  for (const { fields } of found.sources.get(relation) ?? []) fields[use].add(path)
}

function useWhole(relation: number, found: Found): void {
  for (const { fields } of found.sources.get(relation) ?? []) fields.whole = true
}

/** The number of records tells nothing about their contents. */
function isCounted(part: Expression, by: Expression): boolean {
  return part.kind === 'record' && by.kind === 'aggregate' && by.name === 'count' && !by.distinct
}
