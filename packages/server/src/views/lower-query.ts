import {
  type Aggregate,
  type Expression,
  outputOf,
  partsOf,
  type Query,
  queryOf,
  type Relation,
  type SelectQuery,
  type ValueType,
} from '../query/tree/query.ts'
import { joinBundle } from './build-join.ts'
import {
  type Bundle,
  bundleOf,
  type Flow,
  projectFlow,
  sourceFlow,
  unionFlow,
} from './delta-relation.ts'
import { conjuncts, namesDataSet, relationsIn } from './expression-relations.ts'
import type { Tally } from './group-state.ts'
import { mapExpression } from './map-expression.ts'
import { Obstacle } from './not-incremental.ts'
import { planGroups } from './plan-groups.ts'

/** The tables that the flows made so far keep, in the order in which they are brought up to date. */
export type Kept = {
  readonly tallies: Tally[]
  /** The next name for a table. */
  readonly nextSuffix: () => string
}

/** A query in normal form as a flow; an Obstacle where it cannot be kept by changes. */
export function lowerQuery(query: Query, kept: Kept, isJoined = false): Flow {
  if (query.limit !== undefined || query.offset > 0)
    throw new Obstacle('a LIMIT or an OFFSET in a sub-query')
  if (query.kind === 'select') return lowerSelect(query, kept, isJoined)
  if (query.operator !== 'UNION') throw new Obstacle(query.operator)
  const sides = [query.left, query.right].map((each) => ({
    flow: lowerQuery(each, kept),
    types: outputOf(each).columns.map(({ type }) => type),
  }))
  const types = query.columns.map(({ type }) => type)
  return unionFlow(sides, types)
}

/** The rows of a SELECT, without its order and page. Groups that are joined to are looked up by their keys. */
export function lowerSelect(query: SelectQuery, kept: Kept, isJoined = false): Flow {
  if (query.grouped) {
    const { grouped, where, columns } = lowerGroups(query, kept, isJoined)
    kept.tallies.push(...grouped.bags, grouped.tally)
    return projectFlow({ from: bundleOf(query.id, grouped.flow, []), where, columns, records: [] })
  }
  const columns = query.columns.map(({ expression }) => expression)
  refuseUnkept([...columns, ...conjuncts(query.where)])
  return projectFlow({ ...lowerFrom(query, kept, isJoined), columns, records: query.records })
}

/** The groups of a SELECT, with its columns and HAVING over them as the relation that has the number of the query. */
export function lowerGroups(query: SelectQuery, kept: Kept, isJoined: boolean) {
  const columns = query.columns.map(({ expression }) => expression)
  const having = conjuncts(query.having)
  refuseUnkept([...columns, ...having, ...query.groupBy, ...conjuncts(query.where)])
  const calls = uniqueCalls([...columns, ...having])
  const groups = planGroups(query.groupBy, calls)
  const input = projectFlow({ ...lowerFrom(query, kept), columns: groups.input, records: [] })
  const grouped = groups.rows(input, { suffix: kept.nextSuffix(), isJoined })
  const parts = [...query.groupBy, ...calls]
  const ofGroups = (each: Expression) => asColumns(each, { relation: query.id, parts })
  return { grouped, where: having.map(ofGroups), columns: columns.map(ofGroups) }
}

function refuseUnkept(expressions: readonly Expression[]): void {
  for (const expression of expressions) {
    if (expression.kind === 'window') throw new Obstacle('a window function')
    if (queryOf(expression) !== undefined) throw new Obstacle('a sub-query in an expression')
    if (expression.kind === 'parameter' || expression.kind === 'in-list')
      throw new Obstacle('a parameter')
    if (expression.kind === 'condition' && namesDataSet(expression.condition))
      throw new Obstacle('a data set in a condition')
    refuseUnkept(partsOf(expression))
  }
}

type AggregateCall = Aggregate & { readonly type: ValueType }

function uniqueCalls(expressions: readonly Expression[]): readonly AggregateCall[] {
  const calls = new Map<string, AggregateCall>()
  const visit = (expression: Expression): void => {
    if (expression.kind === 'aggregate') calls.set(JSON.stringify(expression), expression)
    else for (const part of partsOf(expression)) visit(part)
  }
  for (const expression of expressions) visit(expression)
  return [...calls.values()]
}

/** The expression over a relation that has the parts as columns. */
function asColumns(
  expression: Expression,
  { relation, parts }: { readonly relation: number; readonly parts: readonly Expression[] },
): Expression {
  const places = new Map(parts.map((part, at) => [JSON.stringify(part), at] as const))
  const made = mapExpression(expression, (part) => {
    const column = places.get(JSON.stringify(part))
    return column === undefined ? undefined : { kind: 'column', type: part.type, relation, column }
  })
  if ([...relationsIn(made)].some((id) => id !== relation))
    throw new Obstacle('a part of a record among groups')
  return made
}

type From = { readonly from: Bundle; readonly where: readonly Expression[] }

/** The relations of FROM in one, with those conditions of WHERE that no relation and no join took. */
function lowerFrom(query: SelectQuery, kept: Kept, isInner = false): From {
  const [first, ...others] = query.from
  if (first === undefined) throw new Obstacle('a SELECT without FROM')
  const all = others.reduce<Relation>(
    (left, right) => ({ kind: 'join', join: 'CROSS', left, right, on: undefined }),
    first,
  )
  const wholes = new Set(query.records)
  const isJoined = all.kind === 'join' || isInner
  const source = (relation: Source): Flow => {
    if (relation.kind === 'collection') return sourceFlow(relation.model, wholes.has(relation.id))
    if (relation.kind === 'query') return lowerQuery(relation.query, kept, isJoined)
    throw new Obstacle('a common table')
  }
  return lowerRelation(all, conjuncts(query.where), source)
}

type Source = Exclude<Relation, { kind: 'join' }>

/**
 * A condition is asked of a relation alone where it can be, else by the inner join that brings together what it is
 * about; below an outer join only of the side whose rows are kept. What is left over is given back.
 */
function lowerRelation(
  relation: Relation,
  conditions: readonly Expression[],
  source: (relation: Source) => Flow,
): From {
  if (relation.kind !== 'join') {
    const own = conditions.filter((each) => isOf(each, idsOf(relation)))
    const where = conditions.filter((each) => !own.includes(each))
    return { from: bundleOf(relation.id, source(relation), own), where }
  }
  const { join } = relation
  const on = conjuncts(relation.on)
  refuseUnkept(on)
  const isInner = join === 'INNER' || join === 'CROSS'
  const keeps = {
    left: join === 'LEFT' || join === 'FULL',
    right: join === 'RIGHT' || join === 'FULL',
  }
  const asked = isInner ? [...conditions, ...on] : conditions
  const of = (side: Relation) => asked.filter((each) => isOf(each, idsOf(side)))
  const toLeft = keeps.right ? [] : of(relation.left)
  const toRight = keeps.left ? [] : of(relation.right)
  const left = lowerRelation(relation.left, toLeft, source)
  const right = lowerRelation(relation.right, toRight, source)
  const rest = asked.filter((each) => !toLeft.includes(each) && !toRight.includes(each))
  const where = [...rest, ...left.where, ...right.where]
  const sides = { left: left.from, right: right.from, keeps }
  return isInner
    ? { from: joinBundle({ ...sides, on: where }), where: [] }
    : { from: joinBundle({ ...sides, on }), where }
}

function idsOf(relation: Relation): ReadonlySet<number> {
  if (relation.kind !== 'join') return new Set([relation.id])
  return new Set([...idsOf(relation.left), ...idsOf(relation.right)])
}

function isOf(expression: Expression, ids: ReadonlySet<number>): boolean {
  const used = relationsIn(expression)
  return used.size > 0 && [...used].every((id) => ids.has(id))
}
