import { limits } from '@tollbase/contract/limits'
import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { ParameterRef } from '../condition.ts'
import { member } from '../field-path.ts'
import { checkText } from '../operand.ts'
import { refuseLargeTexts } from '../tree/estimate-sizes.ts'
import { constant, numberText } from '../tree/make-expression.ts'
import { nothing, type Query, type TypedConstant, type ValueType } from '../tree/query.ts'
import { readSelect } from './read-select.ts'
import type { Scope } from './scope.ts'
import { readSource, type SourceText } from './source-text.ts'
import type { Reader } from './sql-reader.ts'

export type SqlOptions = {
  /**
   * Milliseconds since 1970, for now(); `run`: the argument `ownParameters.now` of each run; undefined refuses it, as
   * what is asked must be the same at any time.
   */
  readonly now: number | 'run' | undefined
  /** Values for `$1`, `$2` ... (a list) or `:name` (an object); nothing of them is trusted. */
  readonly parameters?: unknown
  /** Instead of values: what each `:name` stands for until the statement runs. All must be used. */
  readonly declared?: readonly ParameterRef[]
  /** Types that collections declare of their fields, by dotted name. */
  readonly typesOf?: (model: string) => ReadonlyMap<string, ValueType> | undefined
  /** Statements that stand in the place of a model as sub-queries. */
  readonly viewOf?: (model: string) => SourceText | undefined
  /** Whether the text was printed by us and may have the calls of read-record-call.ts. */
  readonly recordCalls?: boolean
}

/**
 * The query that a SELECT states, or a 400 that names what is not possible and where. Nothing is known of the
 * collections yet: the caller judges each of `sourcesOfQuery` before it compiles.
 */
export async function parseSql(sql: unknown, options: SqlOptions): Promise<Query> {
  if (typeof sql !== 'string') throw invalid('/sql', 'must be a string')
  return queryOfSource(await readSource(sql), options)
}

/** The same of a statement that the parser has read already. */
export function queryOfSource(source: SourceText, options: SqlOptions): Query {
  const scope: Scope = { relations: [], tables: new Map(), outer: undefined }
  const nextId = counter()
  const nextSource = counter()
  const readerOf = (text: SourceText, recordCalls: boolean): Reader => {
    const reader: Reader = {
      source: text,
      parameters:
        options.declared === undefined || text !== source
          ? readParameters(options.parameters, text.parameterNames)
          : declaredParameters(options.declared, text.parameterNames),
      now: options.now,
      recordCalls,
      typesOf: options.typesOf ?? (() => undefined),
      nextId,
      spendSource: (location) => {
        if (nextSource() > limits.sqlSourcesMax)
          throw text.refuse(location, `more than ${limits.sqlSourcesMax} collections`)
      },
      readSelect: (select, place) => readSelect(select, { ...place, reader }),
      readView: (model, depth) => {
        const view = options.viewOf?.(model)
        if (view === undefined) return undefined
        return readSelect(view.select, { reader: readerOf(view, true), scope, depth })
      },
    }
    return reader
  }
  const reader = readerOf(source, options.recordCalls ?? false)
  const query = readSelect(source.select, { reader, scope, depth: 0 })
  refuseLargeTexts(query)
  return query
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
  if (unused !== undefined) throw invalid('/sql', `does not use its parameter :${unused.name}`)
  return names.map((name) => {
    const found = declared.find((one) => one.name === name)
    if (found === undefined) throw invalid('/sql', `uses :${name}, which is none of its parameters`)
    return found
  })
}

function readParameters(given: unknown, names: readonly string[]): readonly TypedConstant[] {
  if (given === undefined || given === null) return []
  if (Array.isArray(given)) {
    if (given.length > limits.sqlParametersMax)
      throw invalid('/params', `has more than ${limits.sqlParametersMax} values`)
    return given.map((value, index) => parameterOf(value, member('/params', index)))
  }
  if (!isRecord(given)) throw invalid('/params', 'must be a list of values or an object of them')
  const unknown = Object.keys(given).find((name) => !names.includes(name))
  if (unknown !== undefined)
    throw invalid(member('/params', unknown), 'is not a parameter of the statement')
  return names.map((name) => {
    if (!Object.hasOwn(given, name)) throw invalid(member('/params', name), 'is missing')
    return parameterOf(given[name], member('/params', name))
  })
}

function parameterOf(value: unknown, pointer: string): TypedConstant {
  if (value === null) return nothing
  if (typeof value === 'boolean') return constant('boolean', value)
  if (typeof value === 'string') return constant('text', checkText(value, pointer))
  const isNumber = typeof value === 'number' && Number.isFinite(value)
  const number = isNumber ? numberText(String(value)) : undefined
  if (number === undefined)
    throw invalid(pointer, 'must be a string, a number, true, false or null')
  return constant('number', number)
}
