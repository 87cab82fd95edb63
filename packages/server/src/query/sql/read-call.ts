import { limits } from '@tollbase/contract/limits'
import type { FuncCall, Node, SortBy, WindowDef } from 'libpg-query'
import { findSuggestion, formatSuggestion } from '../../base/known-members.ts'
import { parseBlock } from '../address.ts'
import { ownParameters } from '../parameter.ts'
import { type AggregateDefinition, aggregates, windowFunctions } from '../tree/aggregates.ts'
import {
  type FunctionDefinition,
  functions,
  type ParameterKind,
  units,
  unitsNotCut,
  unitsNotOfInterval,
} from '../tree/functions.ts'
import {
  areWhole,
  castTo,
  coerceTo,
  makeConstant,
  makeParameter,
  markWhole,
  removePadding,
  unifyTypes,
} from '../tree/make-expression.ts'
import { operators } from '../tree/operators.ts'
import { type Expression, type Frame, nothing, type Order } from '../tree/query.ts'
import { readFrame } from './read-frame.ts'
import { readRecordCall } from './read-record-call.ts'
import { listTexts, readWholeNumber, refuse, runAt, type SqlPlace } from './sql-reader.ts'

export type ReadExpression = (node: Node | undefined, place: SqlPlace) => Expression

/** The parts of a call that are read or refused below; a part that only a newer parser knows is refused too. */
const callParts: ReadonlySet<string> = new Set(
  'funcname args agg_order agg_filter over agg_within_group agg_star agg_distinct func_variadic funcformat location'.split(
    ' ',
  ),
)

/** Reads a call of a listed function, aggregate or window function. */
export function readCall(node: FuncCall, place: SqlPlace, read: ReadExpression): Expression {
  const { location } = node
  const name = listTexts(node.funcname)
    .filter((part) => part !== 'pg_catalog')
    .join('.')
    .toLowerCase()
  const foreign = Object.keys(node).find((part) => !callParts.has(part))
  if (foreign !== undefined) throw refuse(place, location, `${foreign} of ${name}`)
  if (node.func_variadic || node.agg_within_group)
    throw refuse(place, location, node.func_variadic ? 'VARIADIC' : 'WITHIN GROUP')
  const ofRecord = place.reader.recordCalls ? readRecordCall(name, node, place) : undefined
  if (ofRecord !== undefined) return ofRecord
  const isWindow = windowFunctions.has(name)
  if (node.over !== undefined && (isWindow || aggregates.has(name)))
    return readWindow({ node, name, over: node.over }, place, read)
  if (isWindow) throw refuse(place, location, `${name} without OVER`)
  const aggregate = aggregates.get(name)
  if (aggregate !== undefined) return readAggregate({ node, name, aggregate }, place, read)
  const plain = node.over ?? node.agg_filter ?? node.agg_order ?? node.agg_distinct ?? node.agg_star
  if (plain !== undefined) throw refuse(place, location, `${name}, which is no aggregate`)
  if (timeFunctions.has(name)) return makeTime(name, place, location)
  const definition = functions.get(name)
  if (definition === undefined) {
    const known = [...functions.keys(), ...aggregates.keys(), ...windowFunctions.keys()]
    const hint = formatSuggestion(findSuggestion(name, known))
    throw refuse(place, location, `the function ${name}, which is not possible${hint}`)
  }
  const args = (node.args ?? []).map((each, index) =>
    definition.parameters[index] === 'unit' ? readUnit(each, place, read) : read(each, place),
  )
  return makeCall(name, args, { place, location })
}

/** Makes a call, its arguments converted to fit. */
export function makeCall(
  name: string,
  args: readonly Expression[],
  { place, location }: CallPlace,
): Expression {
  return runAt(place, location, () => {
    const chosen = operators.has(name) ? operatorFor(name, args) : name
    const definition = operators.get(chosen) ?? functions.get(chosen)
    if (definition === undefined)
      throw refuse(place, location, `the operator ${name}, which is not possible`)
    const made = fitted(args, definition, { name, place, location })
    checkUnit(name, made, { place, location })
    const same = definition.parameters.indexOf('same')
    const type = definition.result === 'same' ? (made[same]?.type ?? 'null') : definition.result
    const call = { kind: 'call', type, name: chosen, arguments: Object.freeze(made) } as const
    return markWhole(Object.freeze(call), givesWhole(definition, made))
  })
}

/** Returns true if the result is an integer in PostgreSQL. */
function givesWhole(
  { parameters, result, whole }: Pick<FunctionDefinition, 'parameters' | 'result' | 'whole'>,
  args: readonly Expression[],
): boolean {
  if (whole !== 'same') return whole === true
  return areWhole(
    args.filter((_, at) => (parameters[at] ?? parameters.at(-1)) === 'same' || result !== 'same'),
  )
}

/** Makes the time of the statement, by the name of a function that gives it. */
export function makeTime(name: string, place: SqlPlace, location: number | undefined): Expression {
  const word = name.replace('SVFOP_', '')
  const known = timeFunctions.get(name)
  if (known === undefined) throw refuse(place, location, `${word}, which is not possible`)
  if (place.reader.now === undefined)
    throw refuse(place, location, `${word}, but a view may change with nothing but its sources`)
  if (place.reader.now === 'run')
    return makeParameter({ name: ownParameters.now, type: known, charsMax: 0, list: false })
  const iso = new Date(place.reader.now).toISOString()
  return known === 'date'
    ? makeConstant('date', iso.slice(0, 10))
    : makeConstant('timestamp', iso.slice(0, -1))
}

/** Functions that give the time of the statement: the names in calls, and the parser's own. */
export const timeFunctions: ReadonlyMap<string, 'timestamp' | 'date'> = new Map([
  ['now', 'timestamp'],
  ['SVFOP_CURRENT_TIMESTAMP', 'timestamp'],
  ['SVFOP_LOCALTIMESTAMP', 'timestamp'],
  ['SVFOP_CURRENT_DATE', 'date'],
])

type CallPlace = { readonly place: SqlPlace; readonly location?: number | undefined }
type Call = CallPlace & { readonly name: string }

function fitted(
  args: readonly Expression[],
  definition: Pick<FunctionDefinition, 'parameters' | 'optional' | 'variadic'>,
  { name, place, location }: Call,
): readonly Expression[] {
  const { parameters, optional = 0, variadic = false } = definition
  const least = parameters.length - optional
  if (args.length < least || (!variadic && args.length > parameters.length)) {
    const most = variadic ? ' or more' : optional > 0 ? ` to ${parameters.length}` : ''
    throw refuse(place, location, `${name} of ${args.length} arguments; it takes ${least}${most}`)
  }
  const kinds = args.map((_, index) => parameters[Math.min(index, parameters.length - 1)] ?? 'same')
  const same = unifyTypes(args.filter((_, index) => kinds[index] === 'same'))
  let next = 0
  return args.map((arg, index) => {
    const kind = kinds[index] ?? 'same'
    return kind === 'same'
      ? (same[next++] ?? nothing)
      : fittedOne(arg, kind, { name, place, location })
  })
}

function fittedOne(arg: Expression, kind: Exclude<ParameterKind, 'same'>, call: Call): Expression {
  const { name, place, location } = call
  switch (kind) {
    case 'printable':
      // Alone among all that takes texts, concat and concat_ws keep the blanks of a char(n).
      return name.startsWith('concat') && arg.type === 'text' ? arg : castTo(arg, 'text')
    case 'time':
      return arg.type === 'interval' ? arg : coerceTo(arg, 'timestamp')
    case 'unit':
      return arg
    case 'json':
      return (arg.kind === 'constant' || arg.kind === 'parameter') && arg.type === 'text'
        ? castTo(arg, 'json')
        : coerceTo(arg, 'json')
    case 'block':
    case 'format': {
      const text = arg.kind === 'constant' && arg.type === 'text' ? arg.value : undefined
      if (typeof text !== 'string' || text.length > 100)
        throw refuse(
          place,
          location,
          `${name} with a ${kind} that is no literal of at most 100 characters`,
        )
      return makeConstant('text', kind === 'block' ? parseBlock(text, '/sql') : text)
    }
    default:
      return coerceTo(removePadding(arg), kind)
  }
}

/** Refuses units that a time cannot be cut to, or that are no part of an interval. */
function checkUnit(
  name: string,
  [unit, time]: readonly Expression[],
  { place, location }: CallPlace,
): void {
  const word = unit?.kind === 'constant' ? String(unit.value) : ''
  const isPart = name === 'extract' || name === 'date_part'
  const wrong =
    (name === 'date_trunc' && unitsNotCut.has(word)) ||
    (isPart && time?.type === 'interval' && unitsNotOfInterval.has(word))
  if (wrong) throw refuse(place, location, `the unit ${word} in ${name}, which has none such`)
}

/** Returns the operator of one sign that fits: times, and those that count in a list, have their own. */
function operatorFor(
  sign: string,
  [left = nothing, right = nothing]: readonly Expression[],
): string {
  if (sign.startsWith('->') && right.type === 'number') return `${sign} number`
  if (sign !== '+' && sign !== '-') return sign
  const isTime = (each: Expression) => each.type === 'timestamp' || each.type === 'date'
  if (right.type === 'interval') return `time ${sign} interval`
  if (sign === '-' && isTime(right))
    return left.type === 'date' && right.type === 'date' ? 'date - date' : 'time - time'
  if (sign === '-' && left.type === 'timestamp') return 'time - time'
  return left.type === 'date' ? `date ${sign} number` : sign
}

function readUnit(node: Node, place: SqlPlace, read: ReadExpression): Expression {
  // EXTRACT's unit is a word, which the parser gives as a text.
  const expression = read(node, place)
  const unit = expression.kind === 'constant' ? String(expression.value).toLowerCase() : ''
  const singular = unit.replace(/s$/, '')
  const known = units.has(unit) ? unit : singular
  if (!units.has(known)) throw refuse(place, undefined, `the unit ${unit}, which is not possible`)
  return makeConstant('text', known)
}

type Aggregated = {
  readonly node: FuncCall
  readonly name: string
  readonly aggregate: AggregateDefinition
}

function readAggregate(
  { node, name, aggregate }: Aggregated,
  place: SqlPlace,
  read: ReadExpression,
): Expression {
  const { location } = node
  const { aggregates: reason } = place.without
  if (reason !== undefined) throw refuse(place, location, `the aggregate ${name} in ${reason}`)
  const inside: SqlPlace = {
    ...place,
    without: { aggregates: 'another aggregate', windows: 'an aggregate' },
  }
  const args = aggregateArguments({ node, name, aggregate }, inside, read)
  const orderBy = readOrder(node.agg_order, inside, read)
  if (aggregate.ordered === true && orderBy.length === 0)
    throw refuse(place, location, `${name} without ORDER BY inside its brackets`)
  if (node.agg_distinct && orderBy.length > 0)
    throw refuse(place, location, 'DISTINCT and ORDER BY in one aggregate')
  const made: Expression = Object.freeze({
    kind: 'aggregate',
    type: aggregate.result === 'same' ? (args[0]?.type ?? 'null') : aggregate.result,
    name,
    arguments: args,
    distinct: node.agg_distinct ?? false,
    orderBy,
    filter: readFilter(node.agg_filter, inside, read),
  })
  return markWhole(made, givesWhole(aggregate, args))
}

function readFilter(filter: Node | undefined, place: SqlPlace, read: ReadExpression) {
  if (filter === undefined) return undefined
  return runAt(place, undefined, () => coerceTo(read(filter, place), 'boolean'))
}

function aggregateArguments(
  { node, name, aggregate }: Aggregated,
  place: SqlPlace,
  read: ReadExpression,
): readonly Expression[] {
  if (node.agg_star) {
    if (name !== 'count') throw refuse(place, node.location, `${name}(*)`)
    return []
  }
  const args = (node.args ?? []).map((each) => read(each, place))
  return runAt(place, node.location, () => {
    const made = fitted(args, aggregate, { name, place, location: node.location })
    // An untyped NULL has no type that an aggregate could have.
    return Object.freeze(
      made.map((each) => (each.type === 'null' ? makeConstant('text', null) : each)),
    )
  })
}

export function readOrder(
  nodes: readonly Node[] | undefined,
  place: SqlPlace,
  read: ReadExpression,
): readonly Order[] {
  const sorts = (nodes ?? []).flatMap((node) => ('SortBy' in node ? [node.SortBy] : []))
  return Object.freeze(sorts.map((sort) => makeOrder(sort, read(sort.node, place), place)))
}

/** Makes an order from the parser's sort; `expression` is sorted by. */
export function makeOrder(sort: SortBy, expression: Expression, place: SqlPlace): Order {
  if (sort.sortby_dir === 'SORTBY_USING') throw refuse(place, sort.location, 'ORDER BY … USING')
  const nulls = { SORTBY_NULLS_FIRST: 'first', SORTBY_NULLS_LAST: 'last' } as const
  const given = sort.sortby_nulls
  return Object.freeze({
    expression,
    descending: sort.sortby_dir === 'SORTBY_DESC',
    nulls:
      given === 'SORTBY_NULLS_FIRST' || given === 'SORTBY_NULLS_LAST' ? nulls[given] : undefined,
  })
}

type Windowed = { readonly node: FuncCall; readonly name: string; readonly over: WindowDef }

function readWindow(
  { node, name, over }: Windowed,
  place: SqlPlace,
  read: ReadExpression,
): Expression {
  const { location } = node
  const { windows: reason } = place.without
  if (reason !== undefined)
    throw refuse(place, location, `the window function ${name} in ${reason}`)
  if (node.agg_distinct || node.agg_order !== undefined)
    throw refuse(place, location, 'DISTINCT or ORDER BY in the brackets of a window function')
  const inside: SqlPlace = { ...place, without: { ...place.without, windows: 'a window' } }
  const own = windowFunctions.get(name)
  if (own !== undefined && node.agg_filter !== undefined)
    throw refuse(place, location, `FILTER of ${name}, which is no aggregate`)
  const aggregate = aggregates.get(name)
  if (aggregate?.ordered === true) throw refuse(place, location, `${name} over a window`)
  const args =
    own === undefined && aggregate !== undefined
      ? aggregateArguments({ node, name, aggregate }, inside, read)
      : runAt(place, location, () =>
          fitted(
            (node.args ?? []).map((each) => read(each, inside)),
            own ?? { parameters: [] },
            {
              name,
              place,
              location,
            },
          ),
        )
  const definition = own ?? aggregate
  const result = definition?.result ?? 'same'
  const window = named(over, place)
  const frame = readWindowFrame(window, inside, read)
  if (frame?.mode === 'GROUPS' && window.orderClause === undefined)
    throw refuse(place, location, 'GROUPS in a window without ORDER BY')
  const made: Expression = Object.freeze({
    kind: 'window',
    type: result === 'same' ? (args[0]?.type ?? 'null') : result,
    name,
    arguments: args,
    filter: readFilter(node.agg_filter, inside, read),
    partitionBy: Object.freeze((window.partitionClause ?? []).map((each) => read(each, inside))),
    orderBy: readOrder(window.orderClause, inside, read),
    frame,
  })
  return markWhole(made, definition !== undefined && givesWhole(definition, args))
}

/** Returns the window itself if OVER gives a name of the WINDOW clause. */
function named(over: WindowDef, place: SqlPlace): WindowDef {
  const name = over.name ?? over.refname
  if (name === undefined) return over
  const found = place.windows?.get(name)
  if (found === undefined || !('WindowDef' in found))
    throw refuse(place, over.location, `the window ${name}, which is not defined`)
  const { WindowDef: definition } = found
  if (over.name !== undefined) return definition
  return {
    ...over,
    ...(definition.partitionClause === undefined
      ? {}
      : { partitionClause: definition.partitionClause }),
    ...(definition.orderClause === undefined ? {} : { orderClause: definition.orderClause }),
  }
}

function readWindowFrame(
  window: WindowDef,
  place: SqlPlace,
  read: ReadExpression,
): Frame | undefined {
  return readFrame(window, {
    offset: (node) => {
      const expression = read(node, place)
      const rows = readWholeNumber(expression, limits.offsetMax)
      if (rows === undefined)
        throw refuse(place, window.location, 'a frame whose offset is no whole number')
      return rows
    },
    refuse: (problem) => refuse(place, window.location, problem),
  })
}
