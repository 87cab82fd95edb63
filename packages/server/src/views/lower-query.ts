import { distinctOnName } from '../query/sql/distinct-on.ts'
import { makeExactKey } from '../query/tree/expression-key.ts'
import { mapExpression } from '../query/tree/map-expression.ts'
import {
  type Aggregate,
  type Expression,
  findSubQuery,
  getOutput,
  listParts,
  type Query,
  type Relation,
  type SelectQuery,
  type ValueType,
} from '../query/tree/query.ts'
import { buildJoin } from './build-join.ts'
import {
  buildProjection,
  buildSource,
  buildUnion,
  type DeltaRelation,
  type JoinInputs,
  makeJoinInput,
} from './delta-relation.ts'
import { collectRelations, hasDataSet, listConjuncts } from './expression-relations.ts'
import type { GroupState } from './group-state.ts'
import { NotIncremental } from './not-incremental.ts'
import { planGroups } from './plan-aggregates.ts'

/**
 * The stored group states that the relations planned so far need, in the order in which they are brought up to
 * date.
 */
export type PlannedTables = {
  readonly groupStates: GroupState[]
  /** Returns the next suffix for a table's name. */
  readonly nextSuffix: () => string
}

/** Turns a normalized query into a delta relation; throws NotIncremental if it cannot be maintained incrementally. */
export function lowerQuery(query: Query, planned: PlannedTables, isJoined = false): DeltaRelation {
  if (query.limit !== undefined || query.offset > 0)
    throw new NotIncremental('a LIMIT or an OFFSET in a sub-query')
  if (query.kind === 'select') return lowerSelect(query, planned, isJoined)
  if (query.operator !== 'UNION') throw new NotIncremental(query.operator)
  if (query.isOfRecords === true) throw new NotIncremental('UNION of whole records (*)')
  const sides = [query.left, query.right].map((each) => ({
    relation: lowerQuery(each, planned),
    types: getOutput(each).columns.map(({ type }) => type),
  }))
  const types = query.columns.map(({ type }) => type)
  return buildUnion(sides, types)
}

/** Lowers a SELECT without its order and page. Groups that are joined to are looked up by their keys. */
export function lowerSelect(
  query: SelectQuery,
  planned: PlannedTables,
  isJoined = false,
): DeltaRelation {
  if (query.grouped) {
    const { grouped, where, columns } = lowerGroups(query, planned, isJoined)
    planned.groupStates.push(...grouped.bags, grouped.state)
    return buildProjection({
      from: makeJoinInput(query.id, grouped.relation, []),
      where,
      columns,
      records: [],
    })
  }
  if (query.columns.some(({ name }) => name === distinctOnName))
    throw new NotIncremental(distinctOnName)
  const columns = query.columns.map(({ expression }) => expression)
  refuseNotIncremental([...columns, ...listConjuncts(query.where)])
  return buildProjection({
    ...lowerFrom(query, planned, isJoined),
    columns,
    records: query.records,
  })
}

/**
 * Lowers the groups of a SELECT, with its columns and HAVING expressed over the groups' relation, which has the
 * query's id.
 */
export function lowerGroups(query: SelectQuery, planned: PlannedTables, isJoined: boolean) {
  const columns = query.columns.map(({ expression }) => expression)
  const having = listConjuncts(query.having)
  if (query.groupingSets !== undefined) throw new NotIncremental('ROLLUP, CUBE or GROUPING SETS')
  refuseNotIncremental([...columns, ...having, ...query.groupBy, ...listConjuncts(query.where)])
  const found = uniqueCalls([...columns, ...having])
  // Groups have a column: HAVING alone makes one group of all rows.
  const calls = query.groupBy.length + found.length === 0 ? [countAll] : found
  const groups = planGroups(query.groupBy, calls)
  const input = buildProjection({
    ...lowerFrom(query, planned),
    columns: groups.input,
    records: [],
  })
  const grouped = groups.rows(input, { suffix: planned.nextSuffix(), isJoined })
  const parts = [...query.groupBy, ...calls]
  const places = new Map(parts.map((part, at) => [makeExactKey(part), at] as const))
  const ofGroups = (each: Expression) => asColumns(each, { relation: query.id, places })
  return { grouped, where: having.map(ofGroups), columns: columns.map(ofGroups) }
}

function refuseNotIncremental(expressions: readonly Expression[]): void {
  for (const expression of expressions) {
    if (expression.kind === 'grouping') throw new NotIncremental('GROUPING')
    if (expression.kind === 'window') throw new NotIncremental('a window function')
    if (findSubQuery(expression) !== undefined)
      throw new NotIncremental('a sub-query in an expression')
    if (expression.kind === 'parameter' || expression.kind === 'in-list')
      throw new NotIncremental('a parameter')
    if (expression.kind === 'condition' && hasDataSet(expression.condition))
      throw new NotIncremental('a data set in a condition')
    refuseNotIncremental(listParts(expression))
  }
}

type AggregateCall = Aggregate & { readonly type: ValueType }

const countAll: AggregateCall = Object.freeze({
  kind: 'aggregate',
  type: 'number',
  name: 'count',
  arguments: [],
  distinct: false,
  orderBy: [],
  filter: undefined,
})

function uniqueCalls(expressions: readonly Expression[]): readonly AggregateCall[] {
  const calls = new Map<string, AggregateCall>()
  const visit = (expression: Expression): void => {
    if (expression.kind === 'aggregate') calls.set(makeExactKey(expression), expression)
    else for (const part of listParts(expression)) visit(part)
  }
  for (const expression of expressions) visit(expression)
  return [...calls.values()]
}

/** Rewrites the expression over a relation that has parts of it as columns; `places` has these by their JSON. */
function asColumns(
  expression: Expression,
  { relation, places }: { readonly relation: number; readonly places: ReadonlyMap<string, number> },
): Expression {
  const made = mapExpression(expression, (part) => {
    const column = places.get(makeExactKey(part))
    return column === undefined ? undefined : { kind: 'column', type: part.type, relation, column }
  })
  if ([...collectRelations(made)].some((id) => id !== relation))
    throw new NotIncremental('a part of a record among groups')
  return made
}

type From = { readonly from: JoinInputs; readonly where: readonly Expression[] }

/** Lowers the relations of FROM to one input, with those conditions of WHERE that no relation and no join took. */
function lowerFrom(query: SelectQuery, planned: PlannedTables, isInner = false): From {
  const [first, ...others] = query.from
  if (first === undefined) throw new NotIncremental('a SELECT without FROM')
  const all = others.reduce<Relation>(
    (left, right) => ({ kind: 'join', join: 'CROSS', left, right, on: undefined }),
    first,
  )
  const wholes = new Set(query.records)
  const isJoined = all.kind === 'join' || isInner
  const source = (relation: Source): DeltaRelation => {
    if (relation.kind === 'collection') return buildSource(relation.model, wholes.has(relation.id))
    if (relation.kind === 'function') throw new NotIncremental('a function in FROM')
    if (relation.kind === 'query' && relation.isLateral === true)
      throw new NotIncremental('LATERAL')
    if (relation.kind === 'query') return lowerQuery(relation.query, planned, isJoined)
    throw new NotIncremental('a common table')
  }
  return lowerRelation(all, listConjuncts(query.where), source)
}

type Source = Exclude<Relation, { kind: 'join' }>

/**
 * Applies a condition to a single relation where it can, else in the inner join that brings together the relations
 * it uses; below an outer join only on the side whose rows are kept. Returns the conditions that are left over.
 */
function lowerRelation(
  relation: Relation,
  conditions: readonly Expression[],
  source: (relation: Source) => DeltaRelation,
): From {
  if (relation.kind !== 'join') {
    const own = conditions.filter((each) => isAbout(each, collectIds(relation)))
    const where = conditions.filter((each) => !own.includes(each))
    return { from: makeJoinInput(relation.id, source(relation), own), where }
  }
  const { join } = relation
  const on = listConjuncts(relation.on)
  refuseNotIncremental(on)
  const isInner = join === 'INNER' || join === 'CROSS'
  const keeps = {
    left: join === 'LEFT' || join === 'FULL',
    right: join === 'RIGHT' || join === 'FULL',
  }
  const asked = isInner ? [...conditions, ...on] : conditions
  const of = (side: Relation) => asked.filter((each) => isAbout(each, collectIds(side)))
  const toLeft = keeps.right ? [] : of(relation.left)
  const toRight = keeps.left ? [] : of(relation.right)
  const left = lowerRelation(relation.left, toLeft, source)
  const right = lowerRelation(relation.right, toRight, source)
  const rest = asked.filter((each) => !toLeft.includes(each) && !toRight.includes(each))
  const where = [...rest, ...left.where, ...right.where]
  const sides = { left: left.from, right: right.from, keeps }
  return isInner
    ? { from: buildJoin({ ...sides, on: where }), where: [] }
    : { from: buildJoin({ ...sides, on }), where }
}

function collectIds(relation: Relation): ReadonlySet<number> {
  if (relation.kind !== 'join') return new Set([relation.id])
  return new Set([...collectIds(relation.left), ...collectIds(relation.right)])
}

function isAbout(expression: Expression, ids: ReadonlySet<number>): boolean {
  const used = collectRelations(expression)
  return used.size > 0 && [...used].every((id) => ids.has(id))
}
