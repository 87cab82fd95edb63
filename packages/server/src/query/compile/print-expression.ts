import { limits } from '@tollbase/contract/limits'
import { assert, requirePresent } from '../../base/assert.ts'
import { compileCondition } from '../compile-condition.ts'
import type { DataSets } from '../data-set.ts'
import { type FieldColumns, findFieldColumn, printColumnValue } from '../field-column.ts'
import { printTieExpression, printValueExpression } from '../index-key.ts'
import { makePlainValue, makeReadValue } from '../parameter.ts'
import { type Parameters, quoteName } from '../sql-text.ts'
import { countSteps, makeTooComplex } from '../steps.ts'
import type { CallText } from '../tree/aggregate-definition.ts'
import { aggregates, windowFunctions } from '../tree/aggregates.ts'
import { functions } from '../tree/functions/all-functions.ts'
import { readConstantText } from '../tree/make-expression.ts'
import type {
  Aggregate,
  Expression,
  FrameEnd,
  Order,
  Query,
  ValueType,
  WindowCall,
} from '../tree/query.ts'
import { operators } from '../tree/sql-operators.ts'
import {
  printComparison,
  printFieldKey,
  printInList,
  printOneOf,
  printPrefixTest,
  type Side,
  type SideColumn,
} from './compare.ts'
import { printCast, printConversion, printFieldConversion } from './convert.ts'

/** The state that the parts of one statement share while it is printed. */
export type Printer = {
  readonly values: Parameters
  readonly query: (query: Query, printer: Printer) => string
  /** The data sets that conditions on a collection may name. */
  readonly dataSets: (model: string) => DataSets | undefined
  /** The relations whose rows are gathered into groups here: of their fields only those grouped by can be used. */
  readonly grouped: ReadonlySet<number>
  /** The field columns of relations; a relation that is read from its records alone has none here. */
  readonly fieldColumns: Map<number, FieldColumns>
  /** The field columns that comparisons may read in place of keys, as no index serves these. */
  readonly filterColumns: Map<number, FieldColumns>
  /** The number of characters printed so far; those of inner expressions count again in outer ones. */
  readonly work: { chars: number }
}

/** The mean number of times that a character may be reprinted: the depth of the largest possible expression. */
const reprintsMax = 8

/** Prints an expression; a JSON value is NULL if it is JSON null. */
export function printExpression(expression: Expression, printer: Printer): string {
  countSteps(8)
  const text = print(expression, printer)
  printer.work.chars += text.length
  if (printer.work.chars > limits.sqlCompiledCharsMax * reprintsMax) throw makeTooComplex()
  return text
}

/**
 * Prints ORDER BY terms that sort as `sortBy` does: by the key that an index has, then by whatever the key leaves
 * open.
 */
export function printOrder(order: Order, printer: Printer): string {
  const { expression } = order
  const ending = printOrderEnding(order)
  const text = printExpression(expression, printer)
  const key = findKey(expression, printer)
  if (expression.type !== 'json' || key === undefined || expression.kind !== 'field')
    return `${printSortKey(text, expression.type)}${ending}`
  const tie = printTieExpression(expression.path, printRecord(expression.relation))
  return `${key}${ending}, ${tie}${ending}`
}

/** Prints the sort key of a value that no index serves. */
export function printSortKey(value: string, type: ValueType): string {
  if (type !== 'json') return value
  return `CASE WHEN jsonb_typeof(${value}) IN ('object', 'array') THEN '{}'::jsonb ELSE ${value} END`
}

export function printOrderEnding({ descending, nulls }: Omit<Order, 'expression'>): string {
  return `${descending ? ' DESC' : ''}${nulls === undefined ? '' : ` NULLS ${nulls.toUpperCase()}`}`
}

/** Prints the jsonb of a relation's record. */
function printRecord(relation: number): string {
  return `r${relation}.data`
}

function findKey(expression: Expression, printer: Printer): string | undefined {
  if (expression.kind !== 'field' || printer.grouped.has(expression.relation)) return undefined
  return printFieldKey(expression.path, printRecord(expression.relation))
}

/** Finds the columns that comparisons of a relation's fields may read; their texts may be cut. */
function getFilterColumns(relation: number, printer: Printer): FieldColumns | undefined {
  return printer.grouped.has(relation) ? undefined : printer.filterColumns.get(relation)
}

function findColumn(expression: Expression, printer: Printer): SideColumn | undefined {
  if (expression.kind !== 'field') return undefined
  const column = findFieldColumn(getFilterColumns(expression.relation, printer), expression.path)
  return column && { type: column.type, text: quoteName(`r${expression.relation}`, column.name) }
}

/** The text is printed on demand: a value that a statement does not use is an error in PostgreSQL. */
function makeSide(expression: Expression, printer: Printer): Side {
  return {
    expression,
    key: findKey(expression, printer),
    column: findColumn(expression, printer),
    get text() {
      return printExpression(expression, printer)
    },
  }
}

/** Kinds of literals that are read before the statement is printed. */
const formats: ReadonlySet<string> = new Set(['date format', 'moment format'])

function print(expression: Expression, printer: Printer): string {
  const inner = (each: Expression) => printExpression(each, printer)
  switch (expression.kind) {
    case 'field':
      return `nullif(${printValueExpression(expression.path, printRecord(expression.relation))}, 'null'::jsonb)`
    case 'record':
      return printRecord(expression.relation)
    case 'leaf':
      return `r${expression.relation}.leaf`
    case 'column':
      return `r${expression.relation}.c${expression.column}`
    case 'constant':
      return printConstant(expression, printer)
    case 'parameter':
      return printParameter(expression, printer)
    case 'call': {
      const called = functions.get(expression.name) ?? operators.get(expression.name)
      const { parameters, print: printCall } = requirePresent(called, expression.name)
      // The pattern of a date is made here: PostgreSQL takes no value that its statement does not use.
      const args = expression.arguments.map((each, at) =>
        formats.has(parameters[at] ?? '') ? '' : inner(each),
      )
      return printCall(args, expression.arguments)
    }
    case 'aggregate':
      return printAggregate(expression, printer)
    case 'window':
      return printWindow(expression, printer)
    case 'grouping':
      return `GROUPING(${expression.arguments.map(inner).join(', ')})::numeric`
    case 'case':
      return printCase(expression, printer)
    case 'convert': {
      const { argument, type } = expression
      if (argument.kind !== 'field' || printer.grouped.has(argument.relation))
        return printConversion(inner(argument), type)
      const { relation, path } = argument
      const column = findFieldColumn(printer.fieldColumns.get(relation), path)
      if (column?.type === type) return printColumnValue(column, `r${relation}`)
      return printFieldConversion(path, printRecord(relation), type)
    }
    case 'cast': {
      const { argument, type } = expression
      const { type: from, zone } = argument
      return printCast(inner(argument), { from, to: type, zone })
    }
    case 'compare': {
      const { left, right } = expression
      const sides = { left: makeSide(left, printer), right: makeSide(right, printer) }
      return printComparison(expression.operator, sides, printer.values)
    }
    case 'in-list':
      return printInList(
        makeSide(expression.argument, printer),
        expression.parameter,
        printer.values,
      )
    case 'one-of':
      return printOneOf(makeSide(expression.argument, printer), expression.values, printer.values)
    case 'like':
    case 'matches':
      return printPattern(expression, printer)
    default:
      return printLogic(expression, printer)
  }
}

type Logic = Extract<
  Expression,
  {
    kind:
      | 'in-query'
      | 'exists'
      | 'scalar'
      | 'is-null'
      | 'is-true'
      | 'is-false'
      | 'and'
      | 'or'
      | 'not'
      | 'condition'
  }
>

function printLogic(expression: Logic, printer: Printer): string {
  const inner = (each: Expression) => printExpression(each, printer)
  switch (expression.kind) {
    case 'in-query':
      return `(${printRow(expression.arguments.map(inner))} IN (${printer.query(expression.query, printer)}))`
    case 'exists':
      return `EXISTS (${printer.query(expression.query, printer)})`
    case 'scalar':
      return `(${printer.query(expression.query, printer)})`
    case 'is-null':
      return `(${inner(expression.argument)} IS NULL)`
    case 'is-true':
      return `(${inner(expression.argument)} IS TRUE)`
    case 'is-false':
      return `(${inner(expression.argument)} IS FALSE)`
    case 'and':
    case 'or':
      return `(${expression.arguments.map(inner).join(expression.kind === 'and' ? '\n AND ' : ' OR ')})`
    case 'not':
      return `(NOT ${inner(expression.argument)})`
    case 'condition': {
      const { relation, model, parent, condition, record } = expression
      const fields = record === undefined ? getFilterColumns(relation, printer) : undefined
      const scope = {
        record: record === undefined ? printRecord(relation) : inner(record),
        parameters: printer.values,
        dataSets: model === undefined ? undefined : printer.dataSets(model),
        columns: fields && { alias: `r${relation}`, fields },
      }
      const other = parent === undefined ? {} : { parent: printRecord(parent) }
      return `(${compileCondition(condition, { ...scope, ...other })})`
    }
  }
}

function printRow(values: readonly string[]): string {
  return values.length === 1 ? values.join() : `(${values.join(', ')})`
}

function printConstant(
  { type, value }: Extract<Expression, { kind: 'constant' }>,
  { values }: Printer,
): string {
  const sqlType = sqlTypes[type]
  if (value === null) return type === 'null' ? 'NULL' : `NULL::${sqlType}`
  // With its type, because PostgreSQL refuses a bare constant in GROUP BY and ORDER BY.
  if (typeof value === 'boolean') return value ? 'TRUE::boolean' : 'FALSE::boolean'
  assert(sqlType !== 'boolean', 'a truth value is no text')
  return values.add(value, sqlType)
}

/** Only a text parameter can have another type than its declared one. */
function printParameter(
  { type, parameter }: Extract<Expression, { kind: 'parameter' }>,
  { values }: Printer,
): string {
  if (type === parameter.type) return values.add(makePlainValue(parameter.name), sqlTypes[type])
  const read = (text: string) => readConstantText(text.trim(), type)
  return values.add(makeReadValue(parameter, type, read), sqlTypes[type])
}

/** The PostgreSQL type for values of each type. */
export const sqlTypes = {
  json: 'jsonb',
  number: 'numeric',
  text: 'text',
  boolean: 'boolean',
  timestamp: 'timestamp',
  date: 'date',
  interval: 'interval',
  null: 'text',
} as const

function printCase(expression: Extract<Expression, { kind: 'case' }>, printer: Printer): string {
  const inner = (each: Expression) => printExpression(each, printer)
  const branches = expression.branches.map(
    ({ when, value }) => ` WHEN ${inner(when)} THEN ${inner(value)}`,
  )
  const { otherwise } = expression
  return `CASE${branches.join('')}${otherwise === undefined ? '' : ` ELSE ${inner(otherwise)}`} END`
}

/** Prints a pattern test, FALSE for JSON values that are no text, as in a request's `find`. */
function printPattern(
  expression: Extract<Expression, { kind: 'like' | 'matches' }>,
  printer: Printer,
): string {
  const { argument, ignoreCase, pattern, kind } = expression
  const side = makeSide(argument, printer)
  const prefix = kind === 'like' && !ignoreCase ? findPrefix(pattern) : undefined
  const starts = prefix === undefined ? undefined : printPrefixTest(side, prefix, printer.values)
  if (starts !== undefined) return starts
  const wanted = printer.values.add(pattern, 'text')
  const test = (text: string) => {
    if (kind === 'matches') return `${text} ~ ${wanted}`
    return ignoreCase ? `lower(${text}) LIKE lower(${wanted})` : `${text} LIKE ${wanted}`
  }
  if (argument.type !== 'json') return `(${test(side.text)})`
  return `CASE jsonb_typeof(${side.text}) WHEN 'string' THEN ${test(`(${side.text} #>> '{}')`)} ELSE ${side.text} IS NULL AND NULL END`
}

/** Returns the prefix that a pattern like `abc%` asks for. */
function findPrefix(pattern: string): string | undefined {
  return /^[^%_\\]+%$/.test(pattern) ? pattern.slice(0, -1) : undefined
}

function printAggregate(aggregate: Aggregate & Expression, printer: Printer): string {
  // Inside an aggregate the rows are not gathered yet.
  const rows: Printer = { ...printer, grouped: new Set() }
  const definition = requirePresent(aggregates.get(aggregate.name), aggregate.name)
  // PostgreSQL orders values that are taken once by nothing but these values, as they are written.
  const printOne = (order: Order) =>
    aggregate.distinct
      ? `${printExpression(order.expression, rows)}${printOrderEnding(order)}`
      : printOrder(order, rows)
  const order = aggregate.orderBy.map(printOne).join(', ')
  const call: CallText = {
    inside: (args) =>
      `${aggregate.distinct ? 'DISTINCT ' : ''}${args}${order === '' ? '' : ` ORDER BY ${order}`}`,
    ...makeEnding(aggregate.filter, { printer: rows, over: '' }),
    direction: aggregate.orderBy[0]?.descending === true ? ' DESC' : '',
  }
  const args = aggregate.arguments.map((each) => printExpression(each, rows))
  return definition.print(args, call, aggregate.type)
}

/** Prints what stands behind the brackets of an aggregate's call. */
function makeEnding(
  filter: Expression | undefined,
  { printer, over }: { readonly printer: Printer; readonly over: string },
): Pick<CallText, 'after' | 'afterWhere'> {
  const own = filter === undefined ? [] : [printExpression(filter, printer)]
  const print = (tests: readonly string[]) =>
    `${tests.length === 0 ? '' : ` FILTER (WHERE ${tests.join(' AND ')})`}${over}`
  return { after: print(own), afterWhere: (test) => print([...own, test]) }
}

function printWindow(call: WindowCall & Expression, printer: Printer): string {
  const partition = call.partitionBy.map((each) => printExpression(each, printer))
  const order = call.orderBy.map((each) => printOrder(each, printer))
  const { frame } = call
  const parts = [
    ...(partition.length === 0 ? [] : [`PARTITION BY ${partition.join(', ')}`]),
    ...(order.length === 0 ? [] : [`ORDER BY ${order.join(', ')}`]),
    ...(frame === undefined
      ? []
      : [
          `${frame.mode} BETWEEN ${printFrameEnd(frame.from, printer)} AND ${printFrameEnd(frame.to, printer)}${frame.exclude}`,
        ]),
  ]
  const over = ` OVER (${parts.join(' ')})`
  const args = call.arguments.map((each) => printExpression(each, printer))
  const own = windowFunctions.get(call.name)
  if (own !== undefined) return own.print(args, over)
  const ending = makeEnding(call.filter, { printer, over })
  const definition = requirePresent(aggregates.get(call.name), call.name)
  const inside = (text: string) => text
  return definition.print(args, { inside, ...ending, direction: '' }, call.type)
}

function printFrameEnd(end: FrameEnd, { values }: Printer): string {
  if (typeof end === 'string') return end
  if ('rows' in end) return `${end.rows} ${end.direction}`
  const type = end.distance.type === 'interval' ? 'interval' : 'numeric'
  return `${values.add(end.distance.value, type)} ${end.direction}`
}
