import { limits } from '@tollbase/contract/limits'
import { countSteps } from '../steps.ts'
import { aggregates } from './aggregates.ts'
import {
  type Bytes,
  countBytes,
  type Member,
  makeBytes,
  makeFieldBytes,
  sumBytes,
} from './bytes.ts'
import {
  type Call,
  computeCallSize,
  computeCastSize,
  computeConstantSize,
  computeParameterSize,
  computeSizeBy,
  type Gathering,
  listNames,
  makePartSize,
  makeSize,
  none,
} from './compute-size.ts'
import {
  type CommonTable,
  type Expression,
  findSubQuery,
  getOutput,
  listParts,
  listSides,
  type Query,
  type Relation,
  type SelectQuery,
} from './query.ts'
import {
  joinSides,
  makeJsonSize,
  makePlainSize,
  mergeSizes,
  renameSize,
  type Size,
  wrapSize,
} from './size.ts'

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

/** The sizes of a row's members, by their names. */
export type RowSizes = ReadonlyMap<string, Size>

/** Steps that are still to be taken for a part of a statement. */
const stepsPerPart = 5

/** Stands for the members of records that a row has whole, as no field has this name. */
const others = ''

/** Returns the sizes of the rows of a view, by its model; undefined for a collection. */
export type SizesOf = (model: string) => RowSizes | undefined

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
export function refuseLargeTexts(query: Query, sizesOf: SizesOf = () => undefined): void {
  const sizes = new SizeEstimator(nominal, sizesOf)
  sizes.measureQuery(query)
}

/** Computes the sizes of the members of a query's rows, for those who read these as records; throws TooLarge too. */
export function computeRowSizes(query: Query): RowSizes {
  const columns = new SizeEstimator(nominal).measureQuery(query)
  const { columns: output, records } = getOutput(query)
  const members = new Map<string, Size>()
  if (records.length > 0)
    members.set(others, makeJsonSize(makeBytes(records.length * nominal.field)))
  for (const [at, { path }] of output.entries()) {
    const [name = '', ...inside] = path
    const size = columns[at] ?? none
    const known = members.get(name)
    const before = known === undefined ? [] : [known.json]
    const names = makeBytes(Buffer.byteLength(JSON.stringify(path)) + 8)
    const isPart = known !== undefined || inside.length > 0
    members.set(name, isPart ? makeJsonSize(sumBytes([...before, size.json, names])) : size)
  }
  return members
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
  readonly #sizesOf: SizesOf
  readonly #columns = new Map<number, readonly Size[]>()
  readonly #tables = new Map<number, readonly Size[]>()
  /** The sizes of whole rows that are no records of a collection, by relation or common table. */
  readonly #rows = new Map<number, RowSizes>()
  /** An expression that stands in several places is measured once. */
  readonly #measured = new Map<Expression, { readonly size: Size; readonly parts: number }>()
  #parts = 0
  /** The expressions that are being measured, outer ones first. */
  readonly #around: Expression[] = []

  constructor(of: Nominal, sizesOf: SizesOf = () => undefined) {
    this.#nominal = of
    this.#sizesOf = sizesOf
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
      this.#setRow(id, this.#findRow(query))
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
    const sides = listSides(query).map((side) => this.measureQuery(side))
    return joinSides(sides, query.id)
  }

  #measureSelect(query: SelectQuery): readonly Size[] {
    for (const relation of query.from) this.#enter(relation)
    const columns = query.columns.map(({ expression }) => this.#measure(expression))
    for (const each of [query.where, query.having, ...query.groupBy])
      if (each !== undefined) this.#measure(each)
    const records = query.records.map((relation) => this.#measureRecord(relation))
    // An answer's row is made as JSON.
    const row = [...records, ...columns.map(({ json }) => json)]
    const apart = row.reduce((sum, each) => sum + countBytes(each), 0)
    if (apart > limits.rowBytesMax && countBytes(sumBytes(row)) > limits.rowBytesMax) {
      const parts = query.columns.map(({ expression }) => expression)
      throw new TooLarge(describeExcess('a row', limits.rowBytesMax), parts)
    }
    return columns
  }

  #enter(relation: Relation): void {
    switch (relation.kind) {
      case 'collection':
        this.#setRow(relation.id, this.#sizesOf(relation.model))
        return
      case 'query':
        this.#columns.set(relation.id, this.measureQuery(relation.query))
        this.#setRow(relation.id, this.#findRow(relation.query))
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
        this.#setRow(relation.id, this.#rows.get(relation.table))
        return
      case 'join':
        this.#enter(relation.left)
        this.#enter(relation.right)
        if (relation.on !== undefined) this.#measure(relation.on)
    }
  }

  #setRow(id: number, row: RowSizes | undefined): void {
    if (row === undefined) return
    this.#rows.set(id, new Map([...row].map(([name, size]) => [name, renameSize(size, id)])))
  }

  /** Finds the sizes of the rows that a query gives whole. */
  #findRow(query: Query): RowSizes | undefined {
    const rows =
      query.kind === 'set'
        ? [query.left, query.right].map((side) => this.#findRow(side))
        : query.records.map((relation) => this.#rows.get(relation))
    const names = new Set(rows.flatMap((row) => [...(row?.keys() ?? [])]))
    if (names.size === 0) return undefined
    // Beside the row of a view may be a record that has a member of the same name.
    const field = rows.includes(undefined) ? [makeJsonSize(makeBytes(this.#nominal.field))] : []
    return new Map(
      [...names].map((name) => {
        const sizes = rows.flatMap((row) => row?.get(name) ?? [])
        return [name, mergeSizes([...sizes, ...field])]
      }),
    )
  }

  #measureRecord(relation: number): Bytes {
    const row = this.#rows.get(relation)
    if (row === undefined) return makeBytes(this.#nominal.field)
    return sumBytes([...row.values()].map(({ json }) => json))
  }

  /**
   * Measures the parts whatever the type of the whole is: a length is short, but the text that it is of may not be.
   */
  #measure(expression: Expression): Size {
    const known = this.#measured.get(expression)
    if (known !== undefined) {
      this.#count(known.parts)
      return known.size
    }
    const before = this.#parts
    this.#count(1)
    this.#around.push(expression)
    const parts = listParts(expression).map((part) => this.#measure(part))
    const query = findSubQuery(expression)
    const inner = query === undefined ? [] : this.measureQuery(query)
    const size = this.#estimate(expression, { parts, inner })
    const most = countBytes(expression.type === 'json' ? size.json : size.text)
    // A value that is only read is there already, and a view's text may be longer as JSON.
    if (most > limits.textBytesMax && !isRead(expression)) {
      const excess = describeExcess(describeExpression(expression), limits.textBytesMax)
      throw new TooLarge(excess, this.#around.toReversed())
    }
    this.#around.pop()
    this.#measured.set(expression, { size, parts: this.#parts - before })
    return size
  }

  /** Counts parts of the statement as it is printed, with all that stands in it several times. */
  #count(parts: number): void {
    this.#parts += parts
    countSteps(parts * stepsPerPart)
  }

  #estimate(
    expression: Expression,
    { parts, inner }: { readonly parts: readonly Size[]; readonly inner: readonly Size[] },
  ): Size {
    const { type } = expression
    if (type === 'number') return this.#estimateNumber(expression, parts)
    if (type !== 'text' && type !== 'json') return short
    switch (expression.kind) {
      case 'field':
        return this.#measureField(expression)
      case 'record':
      case 'leaf':
        return makeSize(type, this.#measureRecord(expression.relation))
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

  #measureField(field: Field): Size {
    const [name, ...inside] = field.path
    const known = this.#rows.get(field.relation)?.get(name)
    return known !== undefined && inside.length === 0
      ? known
      : makeSize(field.type, makeFieldBytes(this.#getField(field)))
  }

  #getField({ relation, path }: Field): Member {
    const [name, ...inside] = path
    const row = this.#rows.get(relation)
    const known = row?.get(name)
    if (known !== undefined)
      return { record: `${relation}.${name}`, path: inside, most: countBytes(known.json) }
    const most = row?.get(others)?.json
    return { record: relation, path, most: most ? countBytes(most) : this.#nominal.field }
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

  #estimateNumber(expression: Expression, [part]: readonly Size[]): Size {
    const { kind } = expression
    if (kind === 'constant' || kind === 'parameter') return makePlainSize(givenNumberBytes)
    if (kind !== 'convert') return makePlainSize(this.#nominal.number)
    // A number of a view's row was computed.
    const { argument } = expression
    const isComputed = argument.kind === 'field' && this.#rows.has(argument.relation)
    const most = isComputed ? countBytes((part ?? none).json) : givenNumberBytes
    return makePlainSize(Math.min(most, this.#nominal.number))
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

type Field = Extract<Expression, { kind: 'field' }>
type Column = Extract<Expression, { kind: 'column' }>

function isRead({ kind }: Expression): boolean {
  return kind === 'field' || kind === 'record' || kind === 'column'
}

const short = makePlainSize(shortBytes)

function describeExpression(expression: Expression): string {
  return expression.kind === 'call' ? expression.name : 'an expression'
}

function describeExcess(what: string, most: number): string {
  const way = ['lpad', 'rpad', 'repeat'].includes(what)
    ? `bound its length, such as by ${what}(text, least(length, 1000))`
    : 'cut the texts that go into it, such as by left(text, 1000)'
  return `more than could be held: ${what} could give more than ${most / 1024 / 1024} MiB; ${way}`
}
