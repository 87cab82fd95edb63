import { makeInvalidFault } from '../../base/fault.ts'
import { makeConstant } from '../tree/make-expression.ts'
import {
  type Expression,
  findSubQuery,
  listParts,
  type Query,
  type Relation,
} from '../tree/query.ts'

/**
 * Leaves out groups of fewer records, so that asking before and after one record is stored tells nothing of it. The
 * records of the first collection of FROM are counted, each once however often a join gives it.
 */
export function requireGroupSize(query: Query, size: number | undefined): Query {
  if (size === undefined) return query
  const first = query.kind === 'select' ? findFirstCollection(query.from[0]) : undefined
  const isPlain = query.kind === 'select' && query.grouped && query.with.length === 0
  if (query.kind !== 'select' || !isPlain || first === undefined || hasQuery(query))
    throw makeInvalidFault(
      '/min_group_size',
      'is of a query that groups records of collections, with no other query inside',
    )
  const leaf: Expression = { kind: 'leaf', type: 'number', relation: first }
  const count: Expression = {
    kind: 'aggregate',
    type: 'number',
    name: 'count',
    arguments: [leaf],
    distinct: true,
    orderBy: [],
    filter: undefined,
  }
  const isLarge: Expression = {
    kind: 'compare',
    type: 'boolean',
    operator: '>=',
    left: count,
    right: makeConstant('number', String(size)),
  }
  return Object.freeze({ ...query, having: addCondition(query.having, isLarge) })
}

/** Adds another condition by AND. */
export function addCondition(condition: Expression | undefined, other: Expression): Expression {
  if (condition === undefined) return other
  return Object.freeze({ kind: 'and', type: 'boolean', arguments: [condition, other] })
}

function findFirstCollection(relation: Relation | undefined): number | undefined {
  if (relation?.kind === 'join') return findFirstCollection(relation.left)
  return relation?.kind === 'collection' ? relation.id : undefined
}

function hasQuery(query: Query & { readonly kind: 'select' }): boolean {
  const isInner = (relation: Relation): boolean =>
    relation.kind === 'join'
      ? [relation.left, relation.right].some(isInner) ||
        (relation.on !== undefined && isAsking(relation.on))
      : relation.kind !== 'collection'
  const own = [query.where, query.having, ...query.groupBy]
  const all = [
    ...own.flatMap((each) => each ?? []),
    ...query.columns.map(({ expression }) => expression),
    ...query.orderBy.map(({ expression }) => expression),
  ]
  return query.from.some(isInner) || all.some(isAsking)
}

function isAsking(expression: Expression): boolean {
  return findSubQuery(expression) !== undefined || listParts(expression).some(isAsking)
}
