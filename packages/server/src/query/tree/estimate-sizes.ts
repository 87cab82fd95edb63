import { limits } from '@tollbase/contract/limits'
import { functions } from './functions/all-functions.ts'
import { bytesPerChar } from './functions/function-definition.ts'
import {
  type CommonTable,
  type Expression,
  findSubQuery,
  getOutput,
  listParts,
  type Query,
  type Relation,
  type SelectQuery,
} from './query.ts'
import { operators } from './sql-operators.ts'

/** The most bytes of a value: of a field, and of the digits of a computed number. */
export type Nominal = { readonly field: number; readonly number: number }

/**
 * A field is a part of a record; a list of numbers with exponents is longer as a text. PostgreSQL's numerics have
 * at most 131,072 digits before the point and 16,383 behind. The result of an aggregate counts as a field. Where
 * these are longer than that, the memory of the process is the bound.
 */
const nominal: Nominal = { field: limits.recordBytesMax, number: 150 * 1024 }

/** The most bytes of a time, a date, an interval or a truth value. */
const shortBytes = 64
/** The most bytes of a number in a record or a statement. */
const givenNumberBytes = 1024

/** The reason why a query asks for more than could be held, in words that follow "has". */
export class TooLarge extends Error {
  /** The expression that is too large, and those around it; of a row its columns. */
  readonly parts: readonly Expression[]

  constructor(problem: string, parts: readonly Expression[]) {
    super(problem)
    this.parts = parts
  }
}

/**
 * Throws TooLarge, before it runs, for a query that builds texts of more than `textBytesMax`, or rows of more than
 * `rowBytesMax`, however functions and sub-queries are nested: a few dozen characters could ask for gigabytes.
 */
export function refuseLargeTexts(query: Query): void {
  const sizes = new SizeEstimator(nominal)
  sizes.measureQuery(query)
}

/** Computes the largest size, in bytes, of each column of a query; throws TooLarge past the limits. */
export function computeColumnSizes(query: Query, of: Nominal): readonly number[] {
  return new SizeEstimator(of).measureQuery(query)
}

/** Walks a query from the inside out, and remembers the sizes of each relation's columns. */
class SizeEstimator {
  readonly #nominal: Nominal
  readonly #columns = new Map<number, readonly number[]>()
  readonly #tables = new Map<number, readonly number[]>()
  /** The expressions that are being measured, outer ones first. */
  readonly #around: Expression[] = []

  constructor(of: Nominal) {
    this.#nominal = of
  }

  measureQuery(query: Query): readonly number[] {
    for (const table of query.with) this.#enterTable(table)
    const columns = query.kind === 'set' ? this.#measureSet(query) : this.#measureSelect(query)
    this.#columns.set(query.id, columns)
    for (const { expression } of query.orderBy) this.#measure(expression)
    return columns
  }

  /** The rows of a table that names itself are bounded when it runs, so a step makes what it makes of such rows. */
  #enterTable({ id, query, isRecursive }: CommonTable): void {
    if (isRecursive !== true) {
      this.#tables.set(id, this.measureQuery(query))
      return
    }
    const bounded = getOutput(query).columns.map(() => limits.sqlRecursionRowBytesMax)
    this.#tables.set(id, bounded)
    this.measureQuery(query)
  }

  #measureSet(query: Extract<Query, { kind: 'set' }>): readonly number[] {
    const left = this.measureQuery(query.left)
    const right = this.measureQuery(query.right)
    return left.map((size, at) => Math.max(size, right[at] ?? 0))
  }

  #measureSelect(query: SelectQuery): readonly number[] {
    for (const relation of query.from) this.#enter(relation)
    const columns = query.columns.map(({ expression }) => this.#measure(expression))
    for (const each of [query.where, query.having, ...query.groupBy])
      if (each !== undefined) this.#measure(each)
    const records = query.records.length * this.#nominal.field
    const row = columns.reduce((sum, size) => sum + size, records)
    if (row > limits.rowBytesMax) {
      const parts = query.columns.map(({ expression }) => expression)
      throw new TooLarge(describeExcess('a row', limits.rowBytesMax), parts)
    }
    return columns
  }

  #enter(relation: Relation): void {
    switch (relation.kind) {
      case 'collection':
        return
      case 'query':
        this.#columns.set(relation.id, this.measureQuery(relation.query))
        return
      case 'function': {
        const sizes = relation.arguments.map((each) => this.#measure(each))
        this.#columns.set(relation.id, [...relation.results.map(() => largest(sizes)), shortBytes])
        return
      }
      case 'common':
        this.#columns.set(relation.id, this.#tables.get(relation.table) ?? [])
        return
      case 'join':
        this.#enter(relation.left)
        this.#enter(relation.right)
        if (relation.on !== undefined) this.#measure(relation.on)
    }
  }

  /**
   * Measures the parts whatever the type of the whole is: a length is short, but the text that it is of may not be.
   */
  #measure(expression: Expression): number {
    this.#around.push(expression)
    const parts = listParts(expression).map((part) => this.#measure(part))
    const query = findSubQuery(expression)
    const inner = query === undefined ? [] : this.measureQuery(query)
    const size = this.#estimate(expression, { parts, inner })
    if (size > limits.textBytesMax) {
      const excess = describeExcess(describeExpression(expression), limits.textBytesMax)
      throw new TooLarge(excess, this.#around.toReversed())
    }
    this.#around.pop()
    return size
  }

  #estimate(
    expression: Expression,
    { parts, inner }: { readonly parts: readonly number[]; readonly inner: readonly number[] },
  ): number {
    if (expression.type === 'number') return this.#estimateNumber(expression)
    if (expression.type !== 'text' && expression.type !== 'json') return shortBytes
    switch (expression.kind) {
      case 'field':
      case 'record':
      case 'leaf':
      case 'aggregate':
        return this.#nominal.field
      case 'column':
        return this.#columns.get(expression.relation)?.[expression.column] ?? this.#nominal.field
      case 'constant':
        // As JSON, in which a control character takes six bytes: it may become a part of some.
        return Buffer.byteLength(JSON.stringify(String(expression.value)))
      case 'parameter':
        return expression.parameter.charsMax * bytesPerChar
      case 'scalar':
        return largest(inner)
      case 'call':
        return measureCall(expression, parts)
      case 'cast':
        return isQuoted(expression) ? 2 * largest(parts) + 2 : largest(parts)
      default:
        return largest(parts)
    }
  }

  #estimateNumber({ kind }: Expression): number {
    const isGiven = kind === 'convert' || kind === 'constant' || kind === 'parameter'
    return isGiven ? givenNumberBytes : this.#nominal.number
  }
}

/** Returns true for a text as a JSON string, in which a quotation mark or a backslash takes two bytes. */
function isQuoted({ type, argument }: Extract<Expression, { kind: 'cast' }>): boolean {
  return type === 'json' && argument.type === 'text'
}

type Call = Extract<Expression, { kind: 'call' }>

/** Returns the largest size that a function can give, by its row in the table. */
function measureCall({ name, arguments: args }: Call, parts: readonly number[]): number {
  const definition = functions.get(name) ?? operators.get(name)
  const size = definition?.bytes?.(parts, args) ?? largest(parts)
  // Nothing times what is not known is not known either.
  return Number.isNaN(size) ? 0 : size
}

function largest(sizes: readonly number[]): number {
  return Math.max(0, ...sizes)
}

function describeExpression(expression: Expression): string {
  return expression.kind === 'call' ? expression.name : 'an expression'
}

function describeExcess(what: string, most: number): string {
  const way = ['lpad', 'rpad', 'repeat'].includes(what)
    ? `bound its length, such as by ${what}(text, least(length, 1000))`
    : 'cut the texts that go into it, such as by left(text, 1000)'
  return `more than could be held: ${what} could give more than ${most / 1024 / 1024} MiB; ${way}`
}
