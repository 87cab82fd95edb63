import { assert } from '../base/assert.ts'
import { sqlTypes } from '../query/compile/print-expression.ts'
import { makeExactKey } from '../query/tree/expression-key.ts'
import type { Aggregate, Expression, ValueType } from '../query/tree/query.ts'
import { type DeltaColumn, type DeltaRelation, printWeightedRows } from './delta-relation.ts'
import {
  type ComputedColumn,
  computeOnce,
  type GroupState,
  getChangeTable,
  getStateTable,
  indexedBytesMax,
  printHash,
  printSameKeys,
} from './group-state.ts'
import { NotIncremental } from './not-incremental.ts'
import type { Mode, Writing } from './statement-writing.ts'

type AggregateCall = Aggregate & { readonly type: ValueType }

/**
 * Plans groups by the first columns of the input, with aggregates over the others. `input` is the columns that the
 * input must have; `rows` returns the stored group states and the groups as a relation, whose columns are the keys
 * and then the aggregates.
 */
export function planGroups(
  keys: readonly Expression[],
  calls: readonly AggregateCall[],
): {
  readonly input: readonly Expression[]
  readonly rows: (input: DeltaRelation, options: GroupOptions) => Grouped
} {
  const columns = [...keys]
  const places = new Map<string, number>()
  const addColumn = (expression: Expression): string => {
    const text = makeExactKey(expression)
    const place = places.get(text) ?? columns.push(expression) - 1
    places.set(text, place)
    return `c${place}`
  }
  const plan: Plan = { sums: [], bags: [], picks: [], places: new Map() }
  const values = calls.map((call) => valueText(call, { plan, addColumn }))
  return {
    input: columns,
    rows: (input, options) => groupRows({ ...options, keys, calls, values, plan, input }),
  }
}

/** The sums over the input or over the change of a bag, the bags of values, and the extremes that are looked up. */
type Plan = {
  readonly sums: Sum[]
  readonly bags: Bag[]
  readonly picks: Extreme[]
  /** The places of sums and picks in their lists, by their content. */
  readonly places: Map<string, number>
}
type Sum = {
  readonly type: 'int8' | 'numeric'
  /** The SQL of the summand for an occurrence `part` of weight `part.w`. */
  readonly of: string
  readonly bag: Bag | undefined
}
/** A bag: the distinct values of an argument in each group, each with its number of occurrences. */
type Bag = {
  readonly value: string
  readonly test: string
  readonly type: ValueType
  isOrdered: boolean
  isCounted: boolean
}
type Extreme = { readonly bag: Bag; readonly descending: boolean }

type Naming = { readonly plan: Plan; readonly addColumn: (expression: Expression) => string }

/** Prints an aggregate's value from the columns of the group's row `t`. */
function valueText(call: AggregateCall, naming: Naming): string {
  const { plan, addColumn: columnOf } = naming
  refuseNotIncremental(call)
  const [argument] = call.arguments
  const filter = call.filter === undefined ? '' : ` AND part.${columnOf(call.filter)}`
  const sum = (type: Sum['type'], of: string, bag?: Bag) => `t.a${addSum(plan, { type, of, bag })}`
  const times = (test: string) => sum('int8', `part.w * (${test}${filter} IS TRUE)::int4`)
  const counted = (test: string) =>
    filter === '' ? sum('int8', `part.w * (${test})::int4`) : times(`${test}`)
  if (argument === undefined) return filter === '' ? 't.n::numeric' : `${times('TRUE')}::numeric`
  const value = `part.${columnOf(argument)}`
  const present = () => counted(`${value} IS NOT NULL`)
  switch (call.name) {
    case 'count':
      return call.distinct ? `${distinctCount()}::numeric` : `${present()}::numeric`
    case 'sum':
      return `CASE WHEN ${present()} > 0 THEN trim_scale(${total()}) END`
    case 'avg':
      return `CASE WHEN ${present()} > 0 THEN trim_scale(${total()}) / ${present()} END`
    case 'min':
    case 'max': {
      const found = bag()
      found.isOrdered = true
      return `t.p${addPick(plan, { bag: found, descending: call.name === 'max' })}`
    }
    case 'bool_or':
      return `CASE WHEN ${counted(`${value} IS TRUE`)} > 0 THEN TRUE WHEN ${counted(`${value} IS FALSE`)} > 0 THEN FALSE END`
    default:
      return `CASE WHEN ${counted(`${value} IS FALSE`)} > 0 THEN FALSE WHEN ${counted(`${value} IS TRUE`)} > 0 THEN TRUE END`
  }

  function total(): string {
    const test = filter === '' ? value : `CASE WHEN TRUE${filter} THEN ${value} END`
    return sum('numeric', `part.w * ${test}`)
  }
  function bag(): Bag {
    const type = argument?.type ?? 'null'
    const short = argument?.type === 'json' || argument?.type === 'number'
    const column =
      argument === undefined || !short
        ? value
        : `part.${columnOf({ kind: 'cast', type, argument })}`
    const test = `${column} IS NOT NULL${filter}`
    const known = plan.bags.find((each) => each.value === column && each.test === test)
    if (known !== undefined) return known
    const made: Bag = { value: column, test, type, isOrdered: false, isCounted: false }
    plan.bags.push(made)
    return made
  }
  function distinctCount(): string {
    const found = bag()
    found.isCounted = true
    return sum('int8', 'part.w', found)
  }
}

function refuseNotIncremental(call: AggregateCall): void {
  const kept = ['count', 'sum', 'avg', 'min', 'max', 'bool_and', 'bool_or', 'every']
  if (!kept.includes(call.name)) throw new NotIncremental(`the aggregate ${call.name}`)
  const [argument] = call.arguments
  if (['sum', 'avg'].includes(call.name) && argument?.type === 'interval')
    throw new NotIncremental(`the ${call.name} of intervals`)
  const isBag = ['count', 'min', 'max', 'bool_and', 'bool_or', 'every'].includes(call.name)
  if (call.distinct && !isBag) throw new NotIncremental(`${call.name}(DISTINCT …)`)
}

function addSum({ sums, bags, places }: Plan, sum: Sum): number {
  const key = JSON.stringify([sum.type, sum.of, sum.bag && bags.indexOf(sum.bag)])
  const place = places.get(key) ?? sums.push(sum) - 1
  places.set(key, place)
  return place
}

function addPick({ picks, bags, places }: Plan, pick: Extreme): number {
  const key = JSON.stringify([bags.indexOf(pick.bag), pick.descending])
  const place = places.get(key) ?? picks.push(pick) - 1
  places.set(key, place)
  return place
}

export type GroupOptions = {
  /** The suffix of the tables' names. */
  readonly suffix: string
  /** Looks groups up by their keys. */
  readonly isJoined: boolean
}

export type Grouped = {
  /** The states of the bags, which are brought up to date before the groups. */
  readonly bags: readonly GroupState[]
  readonly state: GroupState
  /** The keys and then the aggregates, as columns c0, c1 ... */
  readonly relation: DeltaRelation
  /** Adds those columns to rows of the groups' table (SQL). */
  readonly withValues: (rows: string) => string
}

type Groups = GroupOptions & {
  readonly keys: readonly Expression[]
  readonly calls: readonly AggregateCall[]
  readonly values: readonly string[]
  readonly plan: Plan
  readonly input: DeltaRelation
}

function groupRows(groups: Groups): Grouped {
  const { keys, calls, values, plan, suffix, isJoined } = groups
  const bags = new Map(
    plan.bags.map((bag, at) => [bag, makeBagState(bag, groups, `${suffix}_${at}`)]),
  )
  const picks = plan.picks.map((pick, at): ComputedColumn => {
    const state = bags.get(pick.bag)
    const of = (writing: Writing) => extremeText(pick, { state, count: keys.length, writing })
    return { name: `p${at}`, type: sqlTypes[pick.bag.type], of, isFixed: false }
  })
  const state: GroupState = {
    suffix,
    keys: keys.map(({ type }) => sqlTypes[type]),
    sums: plan.sums.map(({ type }) => type),
    more: picks,
    always: keys.length === 0,
    keepsChange: true,
    indexes: isJoined ? keys.map((_, at) => `USING hash (k${at})`) : [],
    occurrences: (mode, writing) => occurrences(groups, { mode, writing, bags }),
  }
  const list = [...keys.map((_, at) => `t.k${at}`), ...values].map(
    (text, at) => `${text} AS c${at}`,
  )
  const relation: DeltaRelation = {
    columns: [
      { name: 'leaf', type: 'int8' },
      ...[...keys, ...calls].map(
        ({ type }, at): DeltaColumn => ({ name: `c${at}`, type: sqlTypes[type] }),
      ),
    ],
    lookups: { columns: new Set(isJoined ? keys.keys() : []), fields: false },
    rows: ({ place }) =>
      `SELECT ${['t.leaf', ...list].join(', ')} FROM ${getStateTable(state, place)} AS t`,
    // The former version of a row has a leaf of its own.
    change: ({ place }) =>
      `SELECT ${['t.leaf * t.w AS leaf', ...list].join(', ')}, t.w FROM ${getChangeTable(state, place)} AS t`,
  }
  return {
    bags: [...bags.values()],
    state,
    relation,
    withValues: (rows) => `SELECT t.*, ${list.join(', ')} FROM (${rows}) AS t ${computeOnce}`,
  }
}

type OccurrenceOptions = {
  readonly mode: Mode
  readonly writing: Writing
  readonly bags: ReadonlyMap<Bag, GroupState>
}

/** The occurrences in the groups: those of the input rows, and those of the distinct values that came and went. */
function occurrences(
  { keys, plan, input }: Groups,
  { mode, writing, bags }: OccurrenceOptions,
): readonly string[] {
  const list = (from: string, n: string, bag: Bag | undefined) =>
    [
      ...keys.map((_, at) => `part.${from}${at} AS k${at}`),
      `${n} AS n`,
      ...plan.sums.map((sum, at) => `${sum.bag === bag ? sum.of : `0`} AS a${at}`),
    ].join(', ')
  const counted = plan.bags.filter(({ isCounted }) => isCounted)
  return [
    `SELECT ${list('c', 'part.w', undefined)} FROM (${printWeightedRows(input, mode, writing)} ${computeOnce}) AS part`,
    ...counted.map((bag) => {
      const state = bags.get(bag)
      assert(state !== undefined, 'a bag has a table')
      const from =
        mode === 'advance'
          ? getChangeTable(state, writing.place)
          : `(SELECT bag.*, 1 AS w FROM ${getStateTable(state, writing.place)} AS bag)`
      return `SELECT ${list('k', '0', bag)} FROM ${from} AS part`
    }),
  ]
}

function makeBagState(bag: Bag, { keys, input }: Groups, suffix: string): GroupState {
  const leading = keys.map((_, at) => `fresh.k${at}`)
  const value = `k${keys.length}`
  return {
    suffix,
    keys: [...keys.map(({ type }) => sqlTypes[type]), sqlTypes[bag.type]],
    sums: [],
    more: bag.isOrdered
      ? [
          { name: 'part', type: 'int8', of: () => printHash(leading), isFixed: true },
          {
            name: 'long',
            type: 'bool',
            of: () => `octet_length(fresh.${value}::text) > ${indexedBytesMax}`,
            isFixed: true,
          },
        ]
      : [],
    always: false,
    keepsChange: bag.isCounted,
    indexes: bag.isOrdered ? [`(part, ${value}) WHERE NOT long`, `(part) WHERE long`] : [],
    occurrences: (mode, writing) => {
      const list = keys.map((_, at) => `part.c${at} AS k${at}`)
      return [
        `SELECT ${[...list, `${bag.value} AS ${value}`].join(', ')}, part.w AS n FROM (${printWeightedRows(input, mode, writing)}) AS part WHERE ${bag.test}`,
      ]
    },
  }
}

type ExtremeLookup = {
  readonly state: GroupState | undefined
  readonly count: number
  readonly writing: Writing
}

/**
 * Prints the least or greatest of a group's values, in the order of `sortBy`; lists and objects do not count. They
 * stand at both ends of that order: an index condition skips those at the end where it begins, and if the first
 * value after them belongs to the other end, there is no value between.
 */
function extremeText(
  { bag, descending }: Extreme,
  { state, count, writing }: ExtremeLookup,
): string {
  assert(state !== undefined, 'a bag has a table')
  const value = `bag.k${count}`
  const ends = [`${value} >= '""'::jsonb`, `${value} <= 'true'::jsonb`]
  const [begin, end] =
    bag.type !== 'json' ? ['TRUE', 'TRUE'] : descending ? ends.toReversed() : ends
  const order = `ORDER BY ${value}${descending ? ' DESC' : ''} LIMIT 1`
  const one = (test: string) =>
    `(SELECT ${value} FROM ${getStateTable(state, writing.place)} AS bag
  WHERE bag.part = fresh.hash AND ${test}${printSameKeys(count, 'bag', 'fresh')} AND ${begin} ${order})`
  return `(SELECT CASE WHEN ${end} THEN ${value} END FROM (${one('NOT bag.long')} UNION ALL ${one('bag.long')}) AS bag ${order})`
}
