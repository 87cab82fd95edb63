import { limits } from '@tollbase/contract/limits'
import { assert, present } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { compileCondition } from '../compile-condition.ts'
import type { DataSets } from '../data-set.ts'
import { tieExpression, valueExpression } from '../index-key.ts'
import { plain, readAs } from '../parameter.ts'
import type { Parameters } from '../sql-text.ts'
import { aggregates, type CallText, windowFunctions } from '../tree/aggregates.ts'
import { functions } from '../tree/functions.ts'
import { constantText } from '../tree/make-expression.ts'
import { operators } from '../tree/operators.ts'
import type {
  Aggregate,
  Expression,
  FrameEnd,
  Order,
  Query,
  ValueType,
  WindowCall,
} from '../tree/query.ts'
import { compareText, inListText, keyOfField, oneOfText, type Side, startsText } from './compare.ts'
import { castText, convertText } from './convert.ts'

/** What the printing of one statement shares. */
export type Printer = {
  readonly values: Parameters
  readonly query: (query: Query, printer: Printer) => string
  /** The data sets that conditions on a collection may name. */
  readonly dataSets: (model: string) => DataSets | undefined
  /** Relations whose rows are gathered into groups here: their fields are only what they are grouped by. */
  readonly grouped: ReadonlySet<number>
  /** Characters printed so far, those of inner expressions counted again in outer ones. */
  readonly work: { chars: number }
}

/** How often a character may be printed over, in the mean: the depth of an expression that is as large as can be. */
const reprintsMax = 8

/** SQL of an expression; of a JSON value, NULL where it is JSON null. */
export function printExpression(expression: Expression, printer: Printer): string {
  const text = print(expression, printer)
  printer.work.chars += text.length
  if (printer.work.chars > limits.sqlCompiledCharsMax * reprintsMax) throw tooComplex()
  return text
}

/** The statement would be longer than PostgreSQL should be asked to read. */
export function tooComplex(): Fault {
  return new Fault('VALIDATION_FAILED', {
    message: 'The query is too complex: its expressions are too many or nested too deeply',
    details: { field: '/sql', problem: 'is too complex' },
  })
}

/** Terms of ORDER BY that sort as `sortBy` does: by the key that an index has, then by what the key leaves open. */
export function printOrder(order: Order, printer: Printer): string {
  const { expression } = order
  const ending = orderEnding(order)
  const text = printExpression(expression, printer)
  const key = keyOf(expression, printer)
  if (expression.type !== 'json' || key === undefined || expression.kind !== 'field')
    return `${orderText(text, expression.type)}${ending}`
  const tie = tieExpression(expression.path, recordOf(expression.relation))
  return `${key}${ending}, ${tie}${ending}`
}

/** What a value that no index serves is sorted by. */
export function orderText(value: string, type: ValueType): string {
  if (type !== 'json') return value
  return `CASE WHEN jsonb_typeof(${value}) IN ('object', 'array') THEN '{}'::jsonb ELSE ${value} END`
}

export function orderEnding({ descending, nulls }: Omit<Order, 'expression'>): string {
  return `${descending ? ' DESC' : ''}${nulls === undefined ? '' : ` NULLS ${nulls.toUpperCase()}`}`
}

/** The jsonb of a relation's record. */
function recordOf(relation: number): string {
  return `r${relation}.data`
}

function keyOf(expression: Expression, printer: Printer): string | undefined {
  if (expression.kind !== 'field' || printer.grouped.has(expression.relation)) return undefined
  return keyOfField(expression.path, recordOf(expression.relation))
}

/** The text is made when it is asked for: a value that a statement does not use is an error in PostgreSQL. */
function sideOf(expression: Expression, printer: Printer): Side {
  return {
    expression,
    key: keyOf(expression, printer),
    get text() {
      return printExpression(expression, printer)
    },
  }
}

function print(expression: Expression, printer: Printer): string {
  const inner = (each: Expression) => printExpression(each, printer)
  switch (expression.kind) {
    case 'field':
      return `nullif(${valueExpression(expression.path, recordOf(expression.relation))}, 'null'::jsonb)`
    case 'record':
      return recordOf(expression.relation)
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
      return present(called, expression.name).print(expression.arguments.map(inner))
    }
    case 'aggregate':
      return printAggregate(expression, printer)
    case 'window':
      return printWindow(expression, printer)
    case 'case':
      return printCase(expression, printer)
    case 'convert':
      return convertText(inner(expression.argument), expression.type)
    case 'cast': {
      const types = { from: expression.argument.type, to: expression.type }
      return castText(inner(expression.argument), types)
    }
    case 'compare': {
      const { left, right } = expression
      const sides = { left: sideOf(left, printer), right: sideOf(right, printer) }
      return compareText(expression.operator, sides, printer.values)
    }
    case 'in-list':
      return inListText(sideOf(expression.argument, printer), expression.parameter, printer.values)
    case 'one-of':
      return oneOfText(sideOf(expression.argument, printer), expression.values, printer.values)
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
      return `(${inner(expression.argument)} IN (${printer.query(expression.query, printer)}))`
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
      const { relation, model, parent, condition } = expression
      const scope = {
        record: expression.record === undefined ? recordOf(relation) : inner(expression.record),
        parameters: printer.values,
        dataSets: model === undefined ? undefined : printer.dataSets(model),
      }
      const other = parent === undefined ? {} : { parent: recordOf(parent) }
      return `(${compileCondition(condition, { ...scope, ...other })})`
    }
  }
}

function printConstant(
  { type, value }: Extract<Expression, { kind: 'constant' }>,
  { values }: Printer,
): string {
  const sqlType = sqlTypes[type]
  if (value === null) return type === 'null' ? 'NULL' : `NULL::${sqlType}`
  if (typeof value === 'boolean') return value ? 'TRUE' : 'FALSE'
  assert(sqlType !== 'boolean', 'a truth value is no text')
  return values.add(value, sqlType)
}

/** Of another type than it is declared as is only what was a text. */
function printParameter(
  { type, parameter }: Extract<Expression, { kind: 'parameter' }>,
  { values }: Printer,
): string {
  if (type === parameter.type) return values.add(plain(parameter.name), sqlTypes[type])
  const read = (text: string) => constantText(text.trim(), type)
  return values.add(readAs(parameter, type, read), sqlTypes[type])
}

/** What values of each type are in PostgreSQL. */
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

/** FALSE for JSON values that are no text, as in a request's `find`. */
function printPattern(
  expression: Extract<Expression, { kind: 'like' | 'matches' }>,
  printer: Printer,
): string {
  const { argument, ignoreCase, pattern, kind } = expression
  const side = sideOf(argument, printer)
  const prefix = kind === 'like' && !ignoreCase ? prefixOf(pattern) : undefined
  const starts = prefix === undefined ? undefined : startsText(side, prefix, printer.values)
  if (starts !== undefined) return starts
  const wanted = printer.values.add(pattern, 'text')
  const test = (text: string) => {
    if (kind === 'matches') return `${text} ~ ${wanted}`
    return ignoreCase ? `lower(${text}) LIKE lower(${wanted})` : `${text} LIKE ${wanted}`
  }
  if (argument.type !== 'json') return `(${test(side.text)})`
  return `CASE jsonb_typeof(${side.text}) WHEN 'string' THEN ${test(`(${side.text} #>> '{}')`)} ELSE ${side.text} IS NULL AND NULL END`
}

/** The text that a pattern like `abc%` asks to begin with. */
function prefixOf(pattern: string): string | undefined {
  return /^[^%_\\]+%$/.test(pattern) ? pattern.slice(0, -1) : undefined
}

function printAggregate(aggregate: Aggregate & Expression, printer: Printer): string {
  // Inside an aggregate the rows are not gathered yet.
  const rows: Printer = { ...printer, grouped: new Set() }
  const definition = present(aggregates.get(aggregate.name), aggregate.name)
  const order = aggregate.orderBy.map((each) => printOrder(each, rows)).join(', ')
  const call: CallText = {
    inside: (args) =>
      `${aggregate.distinct ? 'DISTINCT ' : ''}${args}${order === '' ? '' : ` ORDER BY ${order}`}`,
    after: filterText(aggregate.filter, rows),
  }
  const args = aggregate.arguments.map((each) => printExpression(each, rows))
  return definition.print(args, call, aggregate.type)
}

function filterText(filter: Expression | undefined, printer: Printer): string {
  return filter === undefined ? '' : ` FILTER (WHERE ${printExpression(filter, printer)})`
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
          `${frame.mode} BETWEEN ${frameEnd(frame.from)} AND ${frameEnd(frame.to)}${frame.exclude}`,
        ]),
  ]
  const over = ` OVER (${parts.join(' ')})`
  const args = call.arguments.map((each) => printExpression(each, printer))
  const own = windowFunctions.get(call.name)
  if (own !== undefined) return own.print(args, over)
  const after = `${filterText(call.filter, printer)}${over}`
  const definition = present(aggregates.get(call.name), call.name)
  return definition.print(args, { inside: (text) => text, after }, call.type)
}

function frameEnd(end: FrameEnd): string {
  return typeof end === 'string' ? end : `${end.rows} ${end.direction}`
}
