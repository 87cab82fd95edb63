import { makeExpressionKey } from '../tree/expression-key.ts'
import { listAllExpressions } from '../tree/list-expressions.ts'
import {
  type Expression,
  findSubQuery,
  listParts,
  listRelations,
  type Query,
} from '../tree/query.ts'

/** Returns true if an aggregate stands in the expression, sub-queries aside. */
export function hasAggregate(expression: Expression): boolean {
  return expression.kind === 'aggregate' || listParts(expression).some(hasAggregate)
}

/** Returns true if a GROUPING stands in the expression that is not of an outer query's groups alone. */
export function hasOwnGrouping(expression: Expression, own: ReadonlySet<number>): boolean {
  if (expression.kind === 'grouping') return !isOuterOnly(expression.arguments, own)
  return listParts(expression).some((part) => hasOwnGrouping(part, own))
}

/** The expressions that a query groups by. */
export class Groups {
  readonly #keys = new Set<string>()
  readonly #kinds = new Set<Expression['kind']>()

  constructor(groupBy: readonly Expression[]) {
    for (const each of groupBy) this.add(each)
  }

  add(expression: Expression): void {
    this.#keys.add(makeExpressionKey(expression))
    this.#kinds.add(expression.kind)
  }

  /** The kind is compared first: to write down each part of a long expression takes the square of its length. */
  has(expression: Expression): boolean {
    return this.#kinds.has(expression.kind) && this.#keys.has(makeExpressionKey(expression))
  }
}

/** Finds a part of the expression that uses the relations but is neither grouped by nor inside an aggregate. */
export function findUngroupedPart(
  expression: Expression,
  own: ReadonlySet<number>,
  groups: Groups,
): Expression | undefined {
  if (groups.has(expression) || expression.kind === 'aggregate') return undefined
  if (expression.kind === 'grouping') return expression.arguments.find((each) => !groups.has(each))
  if (isOfRelation(expression) && own.has(expression.relation)) return expression
  const query = findSubQuery(expression)
  const inQuery = query === undefined ? [] : listAllExpressions(query)
  for (const part of [...listParts(expression), ...inQuery]) {
    const found = findUngroupedPart(part, own, groups)
    if (found !== undefined) return found
  }
  return undefined
}

/** Returns true if expressions use relations, and only those of outer queries; sub-queries in them count. */
export function isOuterOnly(expressions: readonly Expression[], own: ReadonlySet<number>): boolean {
  const used = new Set(expressions.flatMap(relationsUsed))
  return used.size > 0 && ![...used].some((relation) => own.has(relation))
}

function isOfRelation(expression: Expression): expression is Expression & { relation: number } {
  return ['field', 'column', 'record', 'leaf', 'condition'].includes(expression.kind)
}

function relationsUsed(expression: Expression): readonly number[] {
  const own = isOfRelation(expression) ? [expression.relation] : []
  const query = findSubQuery(expression)
  const around = query === undefined ? [] : relationsAround(query)
  return [...own, ...listParts(expression).flatMap(relationsUsed), ...around]
}

/** Lists the relations that a sub-query uses of the queries around it. */
function relationsAround(query: Query): readonly number[] {
  const inside = new Set(relationsIn(query))
  return listAllExpressions(query)
    .flatMap(relationsUsed)
    .filter((relation) => !inside.has(relation))
}

function relationsIn(query: Query): readonly number[] {
  const tables = query.with.flatMap((table) => relationsIn(table.query))
  if (query.kind === 'set')
    return [...tables, ...relationsIn(query.left), ...relationsIn(query.right)]
  const own = listRelations(query.from).flatMap((relation) =>
    relation.kind === 'query' ? [relation.id, ...relationsIn(relation.query)] : [relation.id],
  )
  return [...tables, ...own]
}
