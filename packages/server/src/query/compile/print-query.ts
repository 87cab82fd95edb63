import { limits } from '@tollbase/contract/limits'
import { assert, requirePresent } from '../../base/assert.ts'
import type { Resolve, Source } from '../join.ts'
import { makeWholeNumber } from '../parameter.ts'
import { printBounded } from '../run-bound.ts'
import { quoteName } from '../sql-text.ts'
import { rowFunctions } from '../tree/functions/row.ts'
import { findSideType } from '../tree/make-expression.ts'
import {
  type CommonTable,
  listRelations,
  type Order,
  type OutputColumn,
  type Query,
  type Relation,
  type SelectQuery,
  type SetQuery,
} from '../tree/query.ts'
import { printCast } from './convert.ts'
import { type Printer, printExpression, printOrder, sqlTypes } from './print-expression.ts'
import { printFilter } from './print-filter.ts'
import { readFieldsOnce } from './read-fields-once.ts'
import { wrapGroups } from './wrap-groups.ts'
import { wrapWindows } from './wrap-windows.ts'

export type PrintOptions = {
  readonly resolve: Resolve
  /** Reads every version of a record, deleted ones too. */
  readonly history: boolean
  /** The query whose rows are the answer's. */
  readonly top: Query
}

/** Prints queries as SQL whose columns are c0, c1 ..., and `data`, `body` of a record that is given whole. */
export function makeQueryPrinter(options: PrintOptions): Printer['query'] {
  return (query, printer) => printQuery(query, { printer, options })
}

type Context = { readonly printer: Printer; readonly options: PrintOptions }

function printQuery(query: Query, context: Context): string {
  const tables = query.with.map((table) => printTable(table, context))
  const word = query.with.some(({ isRecursive }) => isRecursive) ? 'WITH RECURSIVE' : 'WITH'
  const head = tables.length === 0 ? '' : `${word} ${tables.join(',\n')}\n`
  return head + (query.kind === 'set' ? printSet(query, context) : printSelect(query, context))
}

function printTable({ id, query, isRecursive }: CommonTable, context: Context): string {
  if (isRecursive !== true || query.kind !== 'set')
    return `w${id} AS (${printQuery(query, context)})`
  const [left, right] = [query.left, query.right].map((each) => printSide(each, query, context))
  return `s${id} AS (${left}\n${query.all ? 'UNION ALL' : 'UNION'} ${right}),\n${printBoundedTable(id, query.columns)}`
}

/**
 * Prints a table of the rows of a recursion that ends the statement where these are too many or too large. It sees
 * each row before a step is made from that, so whatever a step makes is bounded too.
 */
function printBoundedTable(id: number, columns: readonly OutputColumn[]): string {
  const names = columns.map((_, at) => `step.c${at}`)
  const long = columns.flatMap(({ type }, at) => {
    if (type !== 'text' && type !== 'json') return []
    // As JSON, as the estimate of what is made of the row counts it (estimate-sizes.ts).
    const json = type === 'json' ? `found.c${at}` : `to_json(found.c${at})`
    return [`coalesce(octet_length(${json}::text), 0)`]
  })
  const size = ['8', ...long].join(' + ')
  const isLong = printBounded('TRUE', {
    bound: 'size',
    test: `step.size > ${limits.sqlRecursionRowBytesMax}`,
    type: 'boolean',
  })
  const isWithin = printBounded(isLong, {
    bound: 'rows',
    test: `(step.rows > ${limits.sqlRecursionRowsMax} OR step.bytes > ${limits.sqlRecursionBytesMax})`,
    type: 'boolean',
  })
  return `w${id} AS (SELECT ${names.join(', ')}
 FROM (SELECT found.*, ${size} AS size, row_number() OVER before AS rows, sum(${size}) OVER before AS bytes
  FROM s${id} AS found WINDOW before AS (ROWS UNBOUNDED PRECEDING)) AS step
 WHERE ${isWithin})`
}

function printSelect(asked: SelectQuery, context: Context): string {
  const { printer } = context
  noteFieldColumns(asked, context)
  const tied = { ...asked, orderBy: [...asked.orderBy, ...listTies(asked, context)] }
  const query = readFieldsOnce(wrapWindows(wrapGroups(tied)), printer.fieldColumns)
  if (query.distinct) {
    const inner = printRows(query, context, columnList(query, context))
    return `SELECT r${query.id}.* FROM (SELECT DISTINCT${inner}) AS r${query.id}${page(query, printer)}`
  }
  return `SELECT${printRows(query, context, columnList(query, context))}${page(query, afterGrouping(query, printer))}`
}

/** Notes the field columns of what is read here, before anything of the query is printed. */
function noteFieldColumns({ from }: SelectQuery, { printer, options }: Context): void {
  for (const relation of listRelations(from)) {
    if (relation.kind !== 'collection') continue
    const source = options.resolve(relation.model)
    if (source === undefined || source.asOf !== undefined) continue
    const { fieldColumns, filterColumns } = source
    if (fieldColumns !== undefined) printer.fieldColumns.set(relation.id, fieldColumns)
    if (filterColumns !== undefined) printer.filterColumns.set(relation.id, filterColumns)
  }
}

function columnList(query: SelectQuery, { printer }: Context): string {
  const output = afterGrouping(query, printer)
  const columns = query.columns.map(
    ({ expression }, at) => `${printExpression(expression, output)} AS c${at}`,
  )
  const records = query.records.map((relation, at) => {
    const end = at === 0 ? '' : String(at)
    // The sub-query that wrapWindows makes has them under the same names.
    const own = relation === query.id ? end : ''
    return `r${relation}.data${own} AS data${end}, r${relation}.body${own} AS body${end}`
  })
  return ` ${[...columns, ...records].join(', ')}`
}

function printRows(query: SelectQuery, context: Context, columns: string): string {
  const { printer } = context
  const from = query.from.map((relation) => printRelation(relation, context)).join(',\n ')
  const groups = printGroups(query, groupedBy(query, printer))
  return [
    columns,
    from === '' ? '' : `\nFROM ${from}`,
    query.where === undefined ? '' : `\nWHERE ${printFilter(query.where, printer)}`,
    groups === '' ? '' : `\nGROUP BY ${groups}`,
    query.having === undefined
      ? ''
      : `\nHAVING ${printExpression(query.having, groupedBy(query, printer))}`,
  ].join('')
}

function printGroups({ groupBy, groupingSets }: SelectQuery, printer: Printer): string {
  const groups = groupBy.map((each) => printExpression(each, printer))
  if (groupingSets === undefined) return groups.join(', ')
  const sets = groupingSets.map((places) => `(${places.map((at) => groups[at]).join(', ')})`)
  return `GROUPING SETS (${sets.join(', ')})`
}

function page(
  query: Pick<Query, 'orderBy' | 'limit' | 'offset' | 'limitBy' | 'offsetBy'>,
  printer: Printer,
): string {
  const order = query.orderBy.map((each) => printOrder(each, printer))
  return [
    order.length === 0 ? '' : `\nORDER BY ${order.join(', ')}`,
    limitText(query, printer),
    query.offset === 0 ? '' : ` OFFSET ${printer.values.add(query.offset, 'int8')}`,
    query.offsetBy === undefined
      ? ''
      : ` OFFSET ${printer.values.add(makeWholeNumber(query.offsetBy, limits.offsetMax), 'int8')}`,
  ].join('')
}

function limitText({ limit, limitBy }: Pick<Query, 'limit' | 'limitBy'>, { values }: Printer) {
  const all = [
    ...(limit === undefined ? [] : [values.add(limit, 'int8')]),
    ...(limitBy === undefined
      ? []
      : [values.add(makeWholeNumber(limitBy, limits.rowsMax), 'int8')]),
  ]
  if (all.length === 0) return ''
  return ` LIMIT ${all.length === 1 ? all.join() : `least(${all.join(', ')})`}`
}

/**
 * Returns the order of storing for rows of one collection that have no other order, so that pages fit together. In
 * a sub-query without an order or a limit of its own it would be useless work.
 */
function listTies(query: SelectQuery, { options }: Context): readonly Order[] {
  const [only, ...others] = query.from
  const isPart = query.limit !== undefined || query.offset > 0
  const isPartLater = query.limitBy !== undefined || query.offsetBy !== undefined
  const isCut = query.orderBy.length > 0 || isPart || isPartLater
  if (query.distinct || (!isCut && query !== options.top)) return []
  if (query.grouped || others.length > 0 || only?.kind !== 'collection') return []
  const leaf = { kind: 'leaf', type: 'number', relation: only.id } as const
  return [{ expression: leaf, descending: false, nulls: undefined }]
}

function afterGrouping(query: SelectQuery, printer: Printer): Printer {
  return query.grouped ? groupedBy(query, printer) : printer
}

function groupedBy(query: SelectQuery, printer: Printer): Printer {
  const own = listRelations(query.from).map((relation) => relation.id)
  return { ...printer, grouped: new Set([...printer.grouped, ...own]) }
}

function printRelation(relation: Relation, context: Context): string {
  switch (relation.kind) {
    case 'collection':
      return `(${printCollection(relation.model, context)}) AS r${relation.id}`
    case 'query':
      // PostgreSQL keeps a sub-query with a limit apart from the query around; with OFFSET 0 it would use no workers.
      return `${relation.isLateral === true ? 'LATERAL ' : ''}(${printQuery(relation.query, context)}${relation.isFence === true ? ' LIMIT ALL' : ''}) AS r${relation.id}`
    case 'function':
      return printFunction(relation, context)
    case 'common':
      return `${relation.isItself === true ? 's' : 'w'}${relation.table} AS r${relation.id}`
    case 'join': {
      const on = relation.on === undefined ? '' : ` ON ${printFilter(relation.on, context.printer)}`
      return `(${printRelation(relation.left, context)}\n ${relation.join} JOIN ${printRelation(relation.right, context)}${on})`
    }
  }
}

/** Prints the rows of a function; JSON null is NULL, as everywhere. */
function printFunction(
  { id, name, arguments: args, results, hasOrdinality }: Extract<Relation, { kind: 'function' }>,
  { printer }: Context,
): string {
  const definition = requirePresent(rowFunctions.get(name), name)
  const call = definition.print(args.map((each) => printExpression(each, printer)))
  const values = results.map(({ type }, at) =>
    type === 'json' ? `nullif(item.c${at}, 'null'::jsonb) AS c${at}` : `item.c${at}`,
  )
  const last = results.length
  const columns = hasOrdinality ? [...values, `item.c${last}::numeric AS c${last}`] : values
  const ordinality = hasOrdinality ? ' WITH ORDINALITY' : ''
  const names = columns.map((_, at) => `c${at}`)
  return `LATERAL (SELECT ${columns.join(', ')} FROM ${call}${ordinality} AS item(${names.join(', ')})) AS r${id}`
}

function printCollection(model: string, { options }: Context): string {
  const source = options.resolve(model)
  assert(source !== undefined, `the source ${model} is not resolved`)
  if (source.asOf !== undefined) return printSnapshot(source, source.asOf)
  const live = options.history ? '' : ' WHERE superseded_by IS NULL AND NOT deleted'
  const columns = [...(source.fieldColumns?.values() ?? [])].map(
    ({ name }) => `, ${quoteName(name)}`,
  )
  return `SELECT leaf, data, body${columns.join('')} FROM ${quoteName(source.schema, source.table)}${live}`
}

/**
 * Prints the records of a collection as they were when only entries below the leaf `at` (SQL) counted: those that
 * are live, by the indexes of live rows, and those replaced since. Conditions go into both halves. Because the leaf
 * is written with a sum, plans that do not know the position avoid the primary key.
 */
export function printSnapshot({ schema, table, noted }: Source, at: string): string {
  const select = `SELECT leaf, data, body FROM ${quoteName(schema, table)}`
  const ending = noted === undefined ? '' : ` AND ${noted}`
  return `${select} WHERE superseded_by IS NULL AND leaf < ${at} AND NOT deleted${ending}
 UNION ALL ${select} WHERE superseded_by >= ${at} AND leaf + 0 < ${at} AND NOT deleted${ending}`
}

function printSet(query: SetQuery, context: Context): string {
  const side = (each: Query) => printSide(each, query, context)
  const sign = `${query.operator}${query.all ? ' ALL' : ''}`
  // Records that were compared are no longer those that were sent, to the letter.
  const body =
    query.isOfRecords === true && !isPlainUnion(query) ? `, r${query.id}.data::text AS body` : ''
  return `SELECT r${query.id}.*${body} FROM (${side(query.left)}\n${sign} ${side(query.right)}) AS r${query.id}${page(query, context.printer)}`
}

/** Prints one side of a set operation, its columns cast to the types of the whole. */
function printSide(query: Query, set: SetQuery, context: Context): string {
  const columns = set.columns.map(({ type: to }, at) => {
    const from = findSideType(query, at)
    if (from === 'null') return `NULL::${sqlTypes[to]} AS c${at}`
    return `${from === to ? `side.c${at}` : printCast(`side.c${at}`, { from, to })} AS c${at}`
  })
  const record = set.isOfRecords !== true ? [] : isPlainUnion(set) ? wholeRecord : [comparedRecord]
  return `(SELECT ${[...columns, ...record].join(', ')} FROM (${printQuery(query, context)}) AS side)`
}

const wholeRecord = ['side.data', 'side.body']

/** The fields that a record has: to all but UNION ALL, a field that is null is one that is missing. */
const comparedRecord = `(SELECT coalesce(jsonb_object_agg(member.key, member.value), '{}') FROM jsonb_each(side.data) AS member WHERE member.value <> 'null') AS data`

function isPlainUnion({ operator, all }: SetQuery): boolean {
  return operator === 'UNION' && all
}
