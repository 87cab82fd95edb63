import { requirePresent } from '../base/assert.ts'
import { makeExactKey } from '../query/tree/expression-key.ts'
import { mapExpression, mapOrder } from '../query/tree/map-expression.ts'
import {
  type Column,
  type Expression,
  getOutput,
  listRelations,
  makeSelect,
  type OutputColumn,
  type Query,
  type Relation,
  type SelectQuery,
  type SetQuery,
} from '../query/tree/query.ts'
import { decideOrders, listTies, shortenNumbers, toOrders } from './decide-orders.ts'

/**
 * Returns the query in the form that view programs are made from: common tables are put in where they are named,
 * DISTINCT and UNION become groups, and orders stay only where a limit needs them. Whatever PostgreSQL would leave
 * open is decided: a group takes the shortest form of its numbers (1, not 1.0), and rows that are equal in the
 * order of a limit have an order among themselves.
 */
export function normalizeQuery(query: Query): Query {
  let id = firstFreeId
  const context: Context = {
    tables: new Map(),
    nextId: () => {
      id += 1
      return id
    },
  }
  return normal(query, context)
}

/** Relations of queries have lower numbers. */
const firstFreeId = 1_000_000

type Context = {
  readonly tables: ReadonlyMap<number, Query>
  readonly nextId: () => number
}

function normal(query: Query, outer: Context): Query {
  const tables = new Map(outer.tables)
  const context = { ...outer, tables }
  for (const table of query.with) tables.set(table.id, normal(table.query, context))
  const bare = { ...query, with: [] }
  return bare.kind === 'set' ? normalSet(bare, context) : normalSelect(bare, context)
}

function normalSet(query: SetQuery, context: Context): Query {
  const side = (each: Query) => {
    const rows = normal(each, context)
    const isShort = query.operator === 'UNION' || query.isOfRecords === true
    return isShort ? rows : shortRows(rows, context)
  }
  const [left, right] = [side(query.left), side(query.right)]
  // Records of a UNION are compared as wholes; PostgreSQL does that.
  const isDistinct = query.operator === 'UNION' && !query.all && query.isOfRecords !== true
  const set: SetQuery = {
    ...query,
    all: query.all || isDistinct,
    left,
    right,
    orderBy: [],
    limit: undefined,
    offset: 0,
  }
  if (isDistinct) return limited(distinctRows(set, query, context))
  return isCut(query) ? limited(over(set, query, context)) : set
}

function normalSelect(query: SelectQuery, context: Context): Query {
  const inside = (expression: Expression) => withTables(expression, context)
  const select = decideOrders({
    ...query,
    columns: query.columns.map((column) => ({ ...column, expression: inside(column.expression) })),
    from: query.from.map((relation) => normalRelation(relation, context)),
    where: query.where === undefined ? undefined : inside(query.where),
    groupBy: query.groupBy.map(inside),
    having: query.having === undefined ? undefined : inside(query.having),
    orderBy: isCut(query) ? mapOrder(query.orderBy, (each) => queryReplaced(each, context)) : [],
  })
  if (!query.distinct) return limited(select.grouped ? shortGroups(select) : select)
  const all = { ...select, distinct: false, orderBy: [], limit: undefined, offset: 0 }
  const rows = all.grouped ? shortGroups(all) : all
  return limited(distinctRows(rows, { ...query, orderBy: select.orderBy }, context))
}

function isCut({ limit, offset }: Pick<Query, 'limit' | 'offset'>): boolean {
  return limit !== undefined || offset > 0
}

function withTables(expression: Expression, context: Context): Expression {
  return mapExpression(expression, (each) => queryReplaced(each, context))
}

function queryReplaced(expression: Expression, context: Context): Expression | undefined {
  switch (expression.kind) {
    case 'exists':
    case 'scalar':
      return { ...expression, query: normal(expression.query, context) }
    case 'in-query':
      return {
        ...expression,
        arguments: expression.arguments.map((each) => withTables(each, context)),
        query: normal(expression.query, context),
      }
    default:
      return undefined
  }
}

function normalRelation(relation: Relation, context: Context): Relation {
  switch (relation.kind) {
    case 'collection':
      return relation
    case 'query':
      return { ...relation, query: normal(relation.query, context) }
    case 'function':
      return {
        ...relation,
        arguments: relation.arguments.map((each) => withTables(each, context)),
      }
    case 'common':
      return {
        kind: 'query',
        id: relation.id,
        query: requirePresent(context.tables.get(relation.table), 'the common table'),
      }
    case 'join':
      return {
        ...relation,
        left: normalRelation(relation.left, context),
        right: normalRelation(relation.right, context),
        on: relation.on === undefined ? undefined : withTables(relation.on, context),
      }
  }
}

type Cut = Pick<Query, 'id' | 'orderBy' | 'limit' | 'offset'>

/** Wraps the rows of a query as a relation, whose columns `orderBy` names, with the query's page. */
function over(rows: Query, { id, orderBy, limit, offset }: Cut, context: Context): SelectQuery {
  const columns = getOutput(rows).columns.map((column, at) => makeColumn(column, { id, at }))
  const from: Relation[] = [{ kind: 'query', id, query: rows }]
  const records = getOutput(rows).records.map(() => id)
  const select = makeSelect({ columns, from, id: context.nextId() })
  return { ...select, records, orderBy, limit, offset }
}

function makeColumn(
  { name, path, type }: OutputColumn,
  { id, at }: { readonly id: number; readonly at: number },
): Column {
  return { name, path, expression: { kind: 'column', type, relation: id, column: at } }
}

/**
 * Gives the rows of a query with values in their shortest form; an INTERSECT leaves open which side's digits
 * remain.
 */
function shortRows(rows: Query, context: Context): Query {
  if (getOutput(rows).columns.length === 0) return rows
  const whole = { id: context.nextId(), orderBy: [], limit: undefined, offset: 0 }
  const select = over(rows, whole, context)
  const columns = select.columns.map((column) => {
    return { ...column, expression: shortenNumbers(column.expression) }
  })
  return { ...select, columns }
}

/** Gives the distinct rows of a query as groups by all columns. */
function distinctRows(rows: Query, cut: Cut, context: Context): SelectQuery {
  const select = over(rows, cut, context)
  const groupBy = select.columns.map(({ expression }) => expression)
  return shortGroups({ ...select, grouped: true, groupBy })
}

/** Groups equal numbers of different digits under the shortest of them. */
function shortGroups(query: SelectQuery): SelectQuery {
  const long = query.groupBy.filter(({ type }) => type === 'json' || type === 'number')
  const texts = new Set(long.map((each) => makeExactKey(each)))
  const replace = (each: Expression): Expression | undefined => {
    if (each.kind === 'aggregate') return each
    if (each.type !== 'json' && each.type !== 'number') return undefined
    if (!texts.has(makeExactKey(each))) return undefined
    return shortenNumbers(each)
  }
  const map = (each: Expression) => mapExpression(each, replace)
  return {
    ...query,
    columns: query.columns.map((column) => ({ ...column, expression: map(column.expression) })),
    groupBy: query.groupBy.map(map),
    having: query.having === undefined ? undefined : map(query.having),
    orderBy: mapOrder(query.orderBy, replace),
  }
}

/**
 * Gives the rows of a limit an order that leaves nothing open: that of storing if it is known, else by all columns.
 */
function limited(query: SelectQuery): SelectQuery {
  if (!isCut(query)) return query
  const relations = listRelations(query.from)
  const isStored = !query.grouped && relations.every(({ kind }) => kind === 'collection')
  const ties = isStored
    ? relations.map(({ id }): Expression => ({ kind: 'leaf', type: 'number', relation: id }))
    : [
        ...query.columns.flatMap(({ expression }) => listTies(expression)),
        ...query.records.flatMap((id) => listTies({ kind: 'record', type: 'json', relation: id })),
      ]
  return { ...query, orderBy: [...query.orderBy, ...toOrders(ties)] }
}
