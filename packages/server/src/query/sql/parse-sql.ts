import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { ParameterRef } from '../condition.ts'
import { extendPointer } from '../field-path.ts'
import { checkText } from '../operand.ts'
import { limitSteps, runUnbound } from '../steps.ts'
import { refuseLargeTexts, type SizesOf, TooLarge } from '../tree/estimate-sizes.ts'
import { makeConstant, readNumberText } from '../tree/make-expression.ts'
import {
  type Expression,
  nothing,
  type Query,
  type TypedConstant,
  type ValueType,
} from '../tree/query.ts'
import { readSelect } from './read-select.ts'
import type { Scope } from './scope.ts'
import { readSource, type SourceText } from './source-text.ts'
import type { GivenParameter, Reader, ValueList } from './sql-reader.ts'

export type SqlOptions = {
  /**
   * The time for now() in milliseconds since 1970; `run`: the argument `ownParameters.now` of each run; undefined
   * refuses now(), as the query must mean the same at any time.
   */
  readonly now: number | 'run' | undefined
  /** The values for `$1`, `$2` ... (a list) or `:name` (an object); none of them is trusted. */
  readonly parameters?: unknown
  /** Instead of values: the placeholder for each `:name` until the statement runs. All must be used. */
  readonly declared?: readonly ParameterRef[]
  /** The types that collections declare for their fields, by dotted name. */
  readonly typesOf?: (model: string) => ReadonlyMap<string, ValueType> | undefined
  /** The sizes of the rows of views, which records of collections do not have: these are bounded. */
  readonly sizesOf?: SizesOf
  /** Says that no record of a collection can have a field of the name. */
  readonly lacks?: (model: string, name: string) => boolean
  /** The field that names the records of a collection, where each name has one record. */
  readonly primaryOf?: (model: string) => string | undefined
  /** Leaves open what only these types decide; such a query is for finding its sources, and is never compiled. */
  readonly leavesOpen?: boolean
  /** The statements that replace models as sub-queries. */
  readonly viewOf?: (model: string) => SourceText | undefined
  /** True if the text was printed by us and may have the calls of read-record-call.ts. */
  readonly recordCalls?: boolean
  /** True if the text was taken in once, and is read as it was then even where PostgreSQL would take it otherwise. */
  readonly isStored?: boolean
  /** True if even such a text may take no more steps than a new one: somebody else took it in. */
  readonly isBounded?: boolean
}

/**
 * Parses the query that a SELECT states, or throws a 400 that names what is not possible and where. Nothing is
 * known of the collections yet: the caller checks each of `collectQuerySources` before it compiles.
 */
export async function parseSql(sql: unknown, options: SqlOptions): Promise<Query> {
  if (typeof sql !== 'string') throw makeInvalidFault('/sql', 'must be a string')
  return buildQuery(await readSource(sql), options)
}

/** Builds the query of a statement that the parser has read already. */
export function buildQuery(source: SourceText, options: SqlOptions): Query {
  const build = () => readStatement(source, options)
  const { isStored = false, isBounded = !isStored } = options
  return isBounded ? limitSteps(build) : runUnbound(build)
}

function readStatement(source: SourceText, options: SqlOptions): Query {
  const scope: Scope = { relations: [], tables: new Map(), outer: undefined }
  const nextId = counter()
  const sources = new Set<string>()
  const places: Places = new Map()
  const nextUse = counter()
  const nextRecursion = counter()
  const nextColumn = counter()
  const makeReader = (text: SourceText, { recordCalls, isStored }: TextKind): Reader => {
    const spendUse = (location: number | undefined) => {
      if (nextUse() > limits.sqlSourceUsesMax)
        throw text.refuse(
          location,
          `more than ${limits.sqlSourceUsesMax} uses of collections, and of functions in FROM`,
        )
    }
    const reader: Reader = {
      source: text,
      parameters:
        options.declared === undefined || text !== source
          ? readParameters(options.parameters, text.parameterNames)
          : declaredParameters(options.declared, text.parameterNames),
      now: options.now,
      recordCalls,
      isStored,
      typesOf: options.typesOf ?? (() => undefined),
      lacks: options.lacks ?? (() => false),
      primaryOf: options.primaryOf ?? (() => undefined),
      leavesOpen: options.leavesOpen ?? false,
      nextId,
      noteLocation: (expression, location) => {
        if (!places.has(expression)) places.set(expression, { source: text, location })
      },
      spendUse,
      spendColumn: (location) => {
        if (nextColumn() > limits.sqlAllColumnsMax)
          throw text.refuse(
            location,
            `more than ${limits.sqlAllColumnsMax} columns of all its queries together; name those that are needed in place of *`,
          )
      },
      spendRecursion: (location) => {
        if (nextRecursion() > limits.sqlRecursionsMax)
          throw text.refuse(
            location,
            `more than ${limits.sqlRecursionsMax} tables that name themselves`,
          )
      },
      spendSource: (model, location) => {
        spendUse(location)
        if (sources.add(model).size > limits.sqlSourcesMax)
          throw text.refuse(location, `more than ${limits.sqlSourcesMax} collections`)
      },
      readSelect: (select, place) => readSelect(select, { ...place, reader }),
      readView: (model, depth) => {
        const view = options.viewOf?.(model)
        if (view === undefined) return undefined
        const inner = makeReader(view, { recordCalls: true, isStored: true })
        return readSelect(view.select, { reader: inner, scope, depth })
      },
    }
    return reader
  }
  const { recordCalls = false, isStored = false } = options
  const reader = makeReader(source, { recordCalls, isStored })
  const query = readSelect(source.select, { reader, scope, depth: 0 })
  refuseTooLarge(query, { source, places, sizesOf: options.sizesOf })
  return query
}

type TextKind = Pick<Reader, 'recordCalls' | 'isStored'>

/** The parser's places of expressions, in the texts that they were read of. */
type Places = Map<Expression, { readonly source: SourceText; readonly location: number }>

type Measuring = {
  readonly source: SourceText
  readonly places: Places
  readonly sizesOf: SizesOf | undefined
}

function refuseTooLarge(query: Query, { source, places, sizesOf }: Measuring): void {
  try {
    refuseLargeTexts(query, sizesOf)
  } catch (error) {
    if (!(error instanceof TooLarge)) throw error
    const [place] = error.parts.flatMap((part) => places.get(part) ?? [])
    throw (place?.source ?? source).refuse(place?.location, error.message)
  }
}

function counter(): () => number {
  let count = 0
  return () => {
    count += 1
    return count
  }
}

function declaredParameters(
  declared: readonly ParameterRef[],
  names: readonly string[],
): readonly ParameterRef[] {
  const unused = declared.find(({ name }) => !names.includes(name))
  if (unused !== undefined)
    throw makeInvalidFault('/sql', `does not use its parameter :${unused.name}`)
  return names.map((name) => {
    const found = declared.find((one) => one.name === name)
    if (found === undefined)
      throw makeInvalidFault('/sql', `uses :${name}, which is none of its parameters`)
    return found
  })
}

function readParameters(given: unknown, names: readonly string[]): readonly GivenParameter[] {
  if (given === undefined || given === null) return []
  const nextValue = counter()
  const toValue = (value: unknown, pointer: string): GivenParameter =>
    Array.isArray(value) ? toList(value, { pointer, nextValue }) : toConstant(value, pointer)
  if (Array.isArray(given)) {
    if (given.length > limits.sqlParametersMax)
      throw makeInvalidFault('/params', `has more than ${limits.sqlParametersMax} values`)
    return given.map((value, index) => toValue(value, extendPointer('/params', index)))
  }
  if (!isRecord(given))
    throw makeInvalidFault('/params', 'must be a list of values or an object of them')
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw makeInvalidFault(extendPointer('/params', unknown), 'is not a parameter of the statement')
  return names.map((name) => {
    if (!Object.hasOwn(given, name))
      throw makeInvalidFault(extendPointer('/params', name), 'is missing')
    return toValue(given[name], extendPointer('/params', name))
  })
}

type ListPlace = { readonly pointer: string; readonly nextValue: () => number }

/** Reads a list of values; all lists of a statement have one bound. */
function toList(values: readonly unknown[], { pointer, nextValue }: ListPlace): ValueList {
  return {
    values: values.map((value, index) => {
      if (nextValue() > limits.inListMax)
        throw makeInvalidFault('/params', `has lists of more than ${limits.inListMax} values`)
      return toConstant(value, extendPointer(pointer, index))
    }),
  }
}

function toConstant(value: unknown, pointer: string): TypedConstant {
  if (value === null) return nothing
  if (typeof value === 'boolean') return makeConstant('boolean', value)
  if (typeof value === 'string') return makeConstant('text', checkText(value, pointer))
  const isNumber = typeof value === 'number' && Number.isFinite(value)
  const number = isNumber ? readNumberText(String(value)) : undefined
  if (number === undefined)
    throw makeInvalidFault(pointer, 'must be a string, a number, true, false or null')
  return makeConstant('number', number)
}
