import type { FuncCall, Node, WindowDef } from 'libpg-query'
import { findSuggestion, formatSuggestion } from '../../base/known-members.ts'
import { ownParameters } from '../parameter.ts'
import type { AggregateDefinition } from '../tree/aggregate-definition.ts'
import { aggregates, windowFunctions } from '../tree/aggregates.ts'
import { functions } from '../tree/functions/all-functions.ts'
import type { FunctionDefinition } from '../tree/functions/function-definition.ts'
import { units } from '../tree/functions/time.ts'
import {
  areWhole,
  coerceTo,
  findCommonHeld,
  findItems,
  makeConstant,
  makeParameter,
  markHeld,
  markWhole,
  markZone,
  unifyTypes,
} from '../tree/make-expression.ts'
import { type Expression, type Held, nothing } from '../tree/query.ts'
import { operators } from '../tree/sql-operators.ts'
import { chooseOperator } from './choose-operator.ts'
import { type CallPlace, coerceArguments } from './coerce-arguments.ts'
import { findWindow } from './named-windows.ts'
import { otherFunctions, otherOperators, otherWithinGroup } from './other-dialects.ts'
import { placeArguments } from './place-arguments.ts'
import { listRowsOfValues, readCallForm } from './read-call-form.ts'
import { readFramedOrder } from './read-framed-order.ts'
import { readOrder, sortDistinct } from './read-order.ts'
import { readRecordCall } from './read-record-call.ts'
import {
  findFirstLocation,
  findNode,
  listTexts,
  type ReadExpression,
  refuse,
  runAt,
  type SqlPlace,
} from './sql-reader.ts'

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
  if (node.func_variadic) throw refuse(place, location, 'VARIADIC')
  const ofRecord = place.reader.recordCalls ? readRecordCall(name, node, place) : undefined
  if (ofRecord !== undefined) return ofRecord
  const isWindow = windowFunctions.has(name)
  if (node.over !== undefined && (isWindow || aggregates.has(name)))
    return readWindow({ node, name, over: node.over }, place, read)
  if (isWindow) throw refuse(place, location, describeWithoutOver(name, node))
  const aggregate = aggregates.get(name)
  if (aggregate !== undefined) return readAggregate({ node, name, aggregate }, place, read)
  const plain = node.over ?? node.agg_filter ?? node.agg_order ?? node.agg_distinct ?? node.agg_star
  const definition = functions.get(name)
  if (plain !== undefined && (definition !== undefined || timeFunctions.has(name)))
    throw refuse(place, location, `${name}, which is no aggregate`)
  if (timeFunctions.has(name)) return makeTime(name, place, location)
  if (definition === undefined) {
    const known = [...functions.keys(), ...aggregates.keys(), ...windowFunctions.keys()]
    const way = otherFunctions.get(name)
    const hint =
      way === undefined ? formatSuggestion(findSuggestion(name, known)) : `; write ${way}`
    throw refuse(place, location, `the function ${name}, which does not exist here${hint}`)
  }
  refuseCollation(name, node.args ?? [], place)
  const form = readCallForm(name, node, (each) => read(each, place))
  if (form !== undefined)
    return 'node' in form
      ? read(form.node, place)
      : makeCall(form.name, form.args, { place, location })
  const placed = runAt(place, location, () => placeArguments(node.args ?? [], definition, name))
  const args = placed.map((each, index) =>
    definition.parameters[index] === 'unit' ? readUnit(each, place, read) : read(each, place),
  )
  return makeCall(name, args, { place, location })
}

/** Functions that PostgreSQL runs by the rules of a collation. */
const collated: ReadonlySet<string> = new Set(['lower', 'upper', 'initcap'])

/** COLLATE "C" changes no order here, but PostgreSQL's functions of letters would then know those of ASCII alone. */
function refuseCollation(name: string, args: readonly Node[], place: SqlPlace): void {
  const collation = isCollated(name) ? findNode(args, 'CollateClause') : undefined
  if (collation !== undefined)
    throw refuse(place, findFirstLocation(args), `COLLATE inside ${name}`)
}

function isCollated(name: string): boolean {
  return collated.has(name) || name.startsWith('regexp_')
}

/** Makes a call, its arguments converted to fit. */
export function makeCall(
  name: string,
  args: readonly Expression[],
  { place, location }: CallPlace,
): Expression {
  return runAt(place, location, () => {
    const isOperator = operators.has(name)
    const chosen = isOperator ? chooseOperator(name, args) : { name, turned: false }
    const definition = operators.get(chosen.name) ?? functions.get(chosen.name)
    if (definition === undefined) throw refuse(place, location, describeOperator(name))
    const given = chosen.turned ? args.toReversed() : args
    const made = coerceArguments(given, definition, { name, place, location })
    const problem = definition.check?.(made)
    if (problem !== undefined) throw refuse(place, location, problem)
    if (definition.isInexact === true && place.reader.now === undefined)
      throw refuse(place, location, `${name}, whose last digits depend on the machine, in a view`)
    const same = definition.parameters.indexOf('same')
    const type = definition.result === 'same' ? (made[same]?.type ?? 'null') : definition.result
    const fitting = Object.freeze(made)
    const call = { kind: 'call', type, name: chosen.name, arguments: fitting } as const
    const whole = markWhole(Object.freeze(call), givesWhole(definition, made))
    return markHeld(markZone(whole, findZone(definition, made)), findHeld(definition, made))
  })
}

/** Makes an array of values, which become one type; `like` is a value of the type of an array that may be empty. */
export function makeArray(
  given: readonly Expression[],
  at: CallPlace,
  like: Expression = nothing,
): Expression {
  const { place, location } = at
  const items = runAt(place, location, () => unifyTypes([...given, like])).slice(0, -1)
  if (items.some((each) => findItems(each) !== undefined))
    throw refuse(place, location, 'an array of arrays; write jsonb_build_array(…)')
  const [{ type, zone } = like] = items
  const isWhole = areWhole(given.length === 0 ? [like] : items)
  const held = { items: { type: type === 'null' ? 'text' : type, isWhole, zone } } as const
  return markHeld(makeCall('ARRAY', items, at), held)
}

function describeWithoutOver(name: string, node: FuncCall): string {
  const way = node.agg_within_group === true ? otherWithinGroup.get(name) : undefined
  if (way === undefined) return `${name} without OVER`
  return `${name} WITHIN GROUP, which is not possible; write ${way}`
}

function describeOperator(name: string): string {
  const way = otherOperators.get(name)
  return `the operator ${name}, which is not possible${way === undefined ? '' : `; ${way}`}`
}

/** Returns how PostgreSQL holds the JSON value that a function gives. */
function findHeld(
  { held }: { readonly held?: FunctionDefinition['held'] | undefined },
  args: readonly Expression[],
): Held | undefined {
  if (held === 'same') return findCommonHeld(args)
  if (held === 'array') return args.find((each) => findItems(each) !== undefined)?.held
  if (held !== 'items') return held
  const [first = nothing] = args
  const { type, isWhole, zone } = first.kind === 'cast' ? first.argument : first
  return { items: { type, isWhole, zone } }
}

/** Returns what a time means that a function gives. */
function findZone({ zone }: FunctionDefinition, args: readonly Expression[]): Expression['zone'] {
  if (zone !== 'same' && zone !== 'other') return zone
  const known = new Set(args.flatMap((each) => (each.type === 'timestamp' ? [each.zone] : [])))
  const [only] = known
  if (known.size !== 1 || only === undefined) return undefined
  if (zone === 'same') return only
  return only === 'moment' ? 'local' : 'moment'
}

/** Returns true if the result is an integer in PostgreSQL. */
function givesWhole(
  { parameters, result, whole }: Pick<FunctionDefinition, 'parameters' | 'result' | 'whole'>,
  args: readonly Expression[],
): boolean {
  if (whole !== 'same') return whole === true
  return areWhole(
    args.filter((_, at) => {
      const kind = parameters[at] ?? parameters.at(-1)
      return kind === 'same' || kind === 'amount' || result !== 'same'
    }),
  )
}

/** Makes the time of the statement, by the name of a function that gives it. */
export function makeTime(name: string, place: SqlPlace, location: number | undefined): Expression {
  const word = name.replace('SVFOP_', '').replace(/_N$/, ' of a precision')
  const known = timeFunctions.get(name)
  if (known === undefined) throw refuse(place, location, `${word}, which is not possible`)
  if (place.reader.now === undefined)
    throw refuse(place, location, `${word}, but a view may change with nothing but its sources`)
  const zone = name.endsWith('LOCALTIMESTAMP') ? 'local' : 'moment'
  if (place.reader.now === 'run') {
    const { now } = ownParameters
    const time = makeParameter({ name: now, type: known, charsMax: 0, list: false })
    return known === 'date' ? time : markZone(time, zone)
  }
  const iso = new Date(place.reader.now).toISOString()
  if (known === 'date') return makeConstant('date', iso.slice(0, 10))
  return markZone(makeConstant('timestamp', iso.slice(0, -1)), zone)
}

/** Functions that give the time of the statement: the names in calls, and the parser's own. */
export const timeFunctions: ReadonlyMap<string, 'timestamp' | 'date'> = new Map([
  ['now', 'timestamp'],
  ['SVFOP_CURRENT_TIMESTAMP', 'timestamp'],
  ['SVFOP_LOCALTIMESTAMP', 'timestamp'],
  ['SVFOP_CURRENT_DATE', 'date'],
])

function readUnit(node: Node, place: SqlPlace, read: ReadExpression): Expression {
  // EXTRACT's unit is a word, which the parser gives as a text.
  const expression = read(node, place)
  const unit = expression.kind === 'constant' ? String(expression.value).toLowerCase() : ''
  const singular = unit.replace(/nia$/, 'nium').replace(/ies$/, 'y').replace(/s$/, '')
  const known = units.has(unit) ? unit : singular
  if (unit === '') throw refuse(place, undefined, "a unit that is not written out, as 'month'")
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
  place.noteAggregate?.()
  const inside: SqlPlace = {
    ...place,
    without: { aggregates: 'another aggregate', windows: 'an aggregate' },
  }
  const args = aggregateArguments({ node, name, aggregate }, inside, read)
  const problem = aggregate.check?.(args)
  if (problem !== undefined) throw refuse(place, location, problem)
  const order = readOrder(node.agg_order, inside, read)
  if (aggregate.ordered === true && order.length === 0)
    throw refuse(place, location, `${name} without ORDER BY inside its brackets`)
  const orderBy = node.agg_distinct ? sortDistinct(order, { name, args, location }, inside) : order
  const made: Expression = Object.freeze({
    kind: 'aggregate',
    type: aggregate.result === 'same' ? (args[0]?.type ?? 'null') : aggregate.result,
    name: aggregate.standsFor ?? name,
    arguments: args,
    distinct: node.agg_distinct === true || aggregate.standsFor !== undefined,
    orderBy,
    filter: readFilter(node.agg_filter, inside, read),
  })
  return markHeld(markWhole(made, givesWhole(aggregate, args)), findHeld(aggregate, args))
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
  const isWithin = node.agg_within_group === true
  if (isWithin !== (aggregate.within === true))
    throw refuse(
      place,
      node.location,
      isWithin ? `WITHIN GROUP of ${name}` : `${name} without WITHIN GROUP (ORDER BY …)`,
    )
  const within = isWithin ? listWithin(node, place) : []
  const given = name === 'count' ? listRowsOfValues(node.args ?? []) : (node.args ?? [])
  const args = [...within, ...given].map((each) => read(each, place))
  return runAt(place, node.location, () => {
    const made = coerceArguments(args, aggregate, { name, place, location: node.location })
    // An untyped NULL has no type that an aggregate could have.
    return Object.freeze(
      made.map((each) => (each.type === 'null' ? makeConstant('text', null) : each)),
    )
  })
}

/** Lists what WITHIN GROUP orders by, which is one thing. */
function listWithin(node: FuncCall, place: SqlPlace): readonly Node[] {
  const nodes = (node.agg_order ?? []).flatMap((each) =>
    'SortBy' in each && each.SortBy.node !== undefined ? [each.SortBy.node] : [],
  )
  if (nodes.length !== 1) throw refuse(place, node.location, 'WITHIN GROUP by several orders')
  return nodes
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
  const isPlain = aggregate?.within !== true && aggregate?.windowless !== true
  if (aggregate?.ordered === true || !isPlain)
    throw refuse(place, location, `${name} over a window`)
  const args =
    own === undefined && aggregate !== undefined
      ? aggregateArguments({ node, name, aggregate }, inside, read)
      : runAt(place, location, () =>
          coerceArguments(
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
  const window = findWindow(over, place.windows ?? new Map(), (at, construct) =>
    refuse(place, at, construct),
  )
  const { frame, orderBy } = readFramedOrder(window, inside, read)
  const made: Expression = Object.freeze({
    kind: 'window',
    type: result === 'same' ? (args[0]?.type ?? 'null') : result,
    name,
    arguments: args,
    filter: readFilter(node.agg_filter, inside, read),
    partitionBy: Object.freeze((window.partitionClause ?? []).map((each) => read(each, inside))),
    orderBy,
    frame,
  })
  const isWhole = definition !== undefined && givesWhole(definition, args)
  return markHeld(markWhole(made, isWhole), findHeld({ held: aggregate?.held }, args))
}
