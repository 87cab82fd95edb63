import { limits } from '@tollbase/contract/limits'
import { aggregates } from './aggregates.ts'
import {
  asJson,
  asText,
  type Bytes,
  countBytes,
  countTextBytes,
  type Measure,
  type Member,
  makeBytes,
  makeFieldBytes,
  sumBytes,
} from './bytes.ts'
import { functions } from './functions/all-functions.ts'
import type { FunctionDefinition } from './functions/function-definition.ts'
import { listSteps } from './functions/json-operators.ts'
import { countDocumentBytes } from './json-document.ts'
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
import {
  makeJsonSize,
  makePlainSize,
  makeTextSize,
  mergeSizes,
  renameSize,
  type Size,
  wrapSize,
} from './size.ts'
import { operators } from './sql-operators.ts'

/** The most bytes of a value: of a field, and of the digits of a computed number. */
export type Nominal = { readonly field: number; readonly number: number }

/**
 * A field is a part of a record, as JSON, and all fields of a record are together as long as it is; a list of numbers
 * with exponents is longer as a text. PostgreSQL's numerics have at most 131,072 digits before the point and 16,383
 * behind. A value that an aggregate gathers counts as a field, or as what one row gives it where that is longer. Where
 * these are longer than that, the memory of the process is the bound.
 */
const nominal: Nominal = { field: limits.recordBytesMax, number: 150 * 1024 }

/** The most bytes of a time, a date, an interval or a truth value. */
const shortBytes = 80
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

/** Computes the most bytes of each column of a query, as a text and as JSON; throws TooLarge past the limits. */
export function computeColumnSizes(
  query: Query,
  of: Nominal,
): readonly { readonly text: number; readonly json: number }[] {
  const sizes = new SizeEstimator(of).measureQuery(query)
  return sizes.map(({ text, json }) => ({ text: countBytes(text), json: countBytes(json) }))
}

/** Walks a query from the inside out, and remembers the sizes of each relation's columns. */
class SizeEstimator {
  readonly #nominal: Nominal
  readonly #columns = new Map<number, readonly Size[]>()
  readonly #tables = new Map<number, readonly Size[]>()
  /** The expressions that are being measured, outer ones first. */
  readonly #around: Expression[] = []

  constructor(of: Nominal) {
    this.#nominal = of
  }

  measureQuery(query: Query): readonly Size[] {
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
    const most = limits.sqlRecursionRowBytesMax
    const bounded = getOutput(query).columns.map(({ type }, at) =>
      makeSize(type, makeFieldBytes({ record: id, path: [String(at)], most })),
    )
    this.#tables.set(id, bounded)
    this.measureQuery(query)
  }

  #measureSet(query: Extract<Query, { kind: 'set' }>): readonly Size[] {
    const left = this.measureQuery(query.left)
    const right = this.measureQuery(query.right)
    return left.map((size, at) => mergeSizes([size, right[at] ?? none]))
  }

  #measureSelect(query: SelectQuery): readonly Size[] {
    for (const relation of query.from) this.#enter(relation)
    const columns = query.columns.map(({ expression }) => this.#measure(expression))
    for (const each of [query.where, query.having, ...query.groupBy])
      if (each !== undefined) this.#measure(each)
    const records = makeBytes(query.records.length * this.#nominal.field)
    // An answer's row is made as JSON.
    const row = sumBytes([records, ...columns.map(({ json }) => json)])
    if (countBytes(row) > limits.rowBytesMax) {
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
        const part = mergeSizes(relation.arguments.map((each) => this.#measure(each)))
        const columns = relation.results.map(({ type }) => makePartSize(type, part))
        this.#columns.set(relation.id, [...columns, short])
        return
      }
      case 'common':
        this.#columns.set(
          relation.id,
          (this.#tables.get(relation.table) ?? []).map((size) => renameSize(size, relation.id)),
        )
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
  #measure(expression: Expression): Size {
    this.#around.push(expression)
    const parts = listParts(expression).map((part) => this.#measure(part))
    const query = findSubQuery(expression)
    const inner = query === undefined ? [] : this.measureQuery(query)
    const size = this.#estimate(expression, { parts, inner })
    const most = countBytes(expression.type === 'json' ? size.json : size.text)
    if (most > limits.textBytesMax) {
      const excess = describeExcess(describeExpression(expression), limits.textBytesMax)
      throw new TooLarge(excess, this.#around.toReversed())
    }
    this.#around.pop()
    return size
  }

  #estimate(
    expression: Expression,
    { parts, inner }: { readonly parts: readonly Size[]; readonly inner: readonly Size[] },
  ): Size {
    const { type } = expression
    if (type === 'number') return this.#estimateNumber(expression)
    if (type !== 'text' && type !== 'json') return short
    switch (expression.kind) {
      case 'field':
        return makeSize(type, makeFieldBytes(this.#getField(expression)))
      case 'record':
      case 'leaf':
        return makeSize(type, makeBytes(this.#nominal.field))
      case 'aggregate':
      case 'window':
        return this.#estimateGathered(expression, parts)
      case 'column':
        return this.#getColumn(expression)
      case 'constant':
        return computeConstantSize(expression)
      case 'parameter':
        return computeParameterSize(expression.parameter.charsMax)
      case 'scalar':
        return mergeSizes(inner)
      case 'call': {
        const member = this.#findMember(expression)
        return member === undefined
          ? computeCallSize(expression, parts)
          : makePartSize(type, makeJsonSize(makeFieldBytes(member)))
      }
      case 'cast':
      case 'convert':
        return computeCastSize(expression, parts[0] ?? none)
      default:
        return mergeSizes(parts)
    }
  }

  #getField({ relation, path }: Extract<Expression, { kind: 'field' }>): Member {
    return { record: relation, path, most: this.#nominal.field }
  }

  #getColumn({ relation, column, type }: Column): Size {
    const known = this.#columns.get(relation)?.[column]
    return known ?? makeSize(type, makeBytes(this.#nominal.field))
  }

  /** Finds the member of a record, or of a JSON value in a column, that the steps of an expression lead to. */
  #findMember({ name, arguments: [whole, step] }: Call): Member | undefined {
    const steps = step?.kind === 'constant' ? listNames(name, step.value) : []
    if (whole === undefined || steps.length === 0) return undefined
    const around = this.#findPlace(whole)
    return around && { ...around, path: [...around.path, ...steps] }
  }

  #findPlace(expression: Expression): Member | undefined {
    if (expression.kind === 'field') return this.#getField(expression)
    if (expression.kind === 'call') return this.#findMember(expression)
    if (expression.kind !== 'column') return undefined
    const { relation, column } = expression
    const most = countBytes(this.#getColumn(expression).json)
    return { record: `${relation}.${column}`, path: [], most }
  }

  #estimateNumber({ kind }: Expression): Size {
    const isGiven = kind === 'convert' || kind === 'constant' || kind === 'parameter'
    return makePlainSize(isGiven ? givenNumberBytes : this.#nominal.number)
  }

  /** Estimates a value that is made of several rows: one of their values, or all that they give. */
  #estimateGathered(call: Gathering, parts: readonly Size[]): Size {
    const args = parts.slice(0, call.arguments.length)
    const definition = aggregates.get(call.name)
    if (definition?.bytes === undefined) return wrapSize(mergeSizes(args))
    const own = wrapSize(computeSizeBy(definition.bytes, call, args))
    return mergeSizes([own, makeSize(call.type, makeBytes(this.#nominal.field))])
  }
}

type Call = Extract<Expression, { kind: 'call' }>
type Column = Extract<Expression, { kind: 'column' }>
type Gathering = Extract<Expression, { kind: 'aggregate' | 'window' }>

const short = makePlainSize(shortBytes)
const none = makePlainSize(0)

/**
 * Lists the names of the members that an operator's steps lead to. Several numbers name one element of a list (0, 00,
 * -1), so the names end before a number.
 */
function listNames(operator: string, steps: string | boolean | null): readonly string[] {
  if (operator === '->' || operator === '->>') return [String(steps)]
  const path = operator === '#>' || operator === '#>>' ? listSteps(steps) : []
  const end = path.findIndex((step) => /^\s*[+-]?\d+$/.test(step))
  return end === -1 ? path : path.slice(0, end)
}

/** Makes the size of a value that a record, or JSON, of that size holds. */
function makeSize(type: Expression['type'], json: Bytes): Size {
  return type === 'text' ? makeTextSize(json, json) : makeJsonSize(json)
}

function computeConstantSize({ type, value }: Extract<Expression, { kind: 'constant' }>): Size {
  const text = String(value)
  if (type === 'json') return makeJsonSize(makeBytes(countDocumentBytes(text)))
  const [plain, escaped] = [asText, asJson].map((measure) => countTextBytes(text, measure))
  return makeTextSize(makeBytes(plain ?? 0), makeBytes(escaped ?? 0))
}

function computeParameterSize(charsMax: number): Size {
  return makeTextSize(
    makeBytes(charsMax * asText.bytesPerChar),
    makeBytes(charsMax * asJson.bytesPerChar),
  )
}

/** A JSON string that is converted is no longer in its marks than it was; a list or an object becomes NULL. */
function computeCastSize(
  { kind, type, argument }: Extract<Expression, { kind: 'cast' | 'convert' }>,
  part: Size,
): Size {
  if (type !== 'text' || argument.type !== 'json') return part
  return makeTextSize(part.text, kind === 'convert' ? part.json : part.escaped)
}

/** Makes the size of a part of a value: a list inside of a JSON value may be taken out as a text. */
function makePartSize(type: Expression['type'], whole: Size): Size {
  return type === 'text' ? makeTextSize(whole.text, whole.escaped) : whole
}

/** Estimates the largest value that a function can give, by its row in the table. */
function computeCallSize(call: Call, parts: readonly Size[]): Size {
  const definition = functions.get(call.name) ?? operators.get(call.name)
  return definition?.bytes === undefined
    ? makePartSize(call.type, mergeSizes(parts))
    : computeSizeBy(definition.bytes, call, parts)
}

function computeSizeBy(
  count: NonNullable<FunctionDefinition['bytes']>,
  { type, arguments: args }: Call | Gathering,
  parts: readonly Size[],
): Size {
  const countOf = (way: keyof Size, measure: Measure) =>
    count(
      parts.map((part) => part[way]),
      args,
      measure,
    )
  if (type === 'json') return makeJsonSize(countOf('json', asJson))
  return makeTextSize(countOf('text', asText), countOf('escaped', asJson))
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
