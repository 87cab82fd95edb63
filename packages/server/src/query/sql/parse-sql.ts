import { limits } from '@tollbase/contract/limits'
import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { member } from '../field-path.ts'
import { checkText } from '../operand.ts'
import { constant, numberText } from '../tree/build.ts'
import { nothing, type Query, type TypedConstant, type ValueType } from '../tree/query.ts'
import { readSelect } from './read-select.ts'
import type { Reader } from './reader.ts'
import { readSource } from './source-text.ts'

export type SqlOptions = {
  /** Milliseconds since 1970, for now(). */
  readonly now: number
  /** Values for `$1`, `$2` ... (a list) or `:name` (an object); nothing of them is trusted. */
  readonly parameters?: unknown
  /** Types that collections declare of their fields, by dotted name. */
  readonly typesOf?: (model: string) => ReadonlyMap<string, ValueType> | undefined
}

/**
 * The query that a SELECT states, or a 400 that names what is not possible and where. Nothing is known of the
 * collections yet: the caller judges each of `sourcesOfQuery` before it compiles.
 */
export async function parseSql(sql: unknown, options: SqlOptions): Promise<Query> {
  if (typeof sql !== 'string') throw invalid('/sql', 'must be a string')
  const source = await readSource(sql)
  let id = 0
  let sources = 0
  const reader: Reader = {
    source,
    parameters: readParameters(options.parameters, source.parameterNames),
    now: options.now,
    typesOf: options.typesOf ?? (() => undefined),
    nextId: () => {
      id += 1
      return id
    },
    spendSource: (location) => {
      sources += 1
      if (sources > limits.sqlSourcesMax)
        throw source.refuse(location, `more than ${limits.sqlSourcesMax} collections`)
    },
    readSelect: (select, place) => readSelect(select, { ...place, reader }),
  }
  const scope = { relations: [], tables: new Map(), outer: undefined }
  return readSelect(source.select, { reader, scope, depth: 0 })
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
