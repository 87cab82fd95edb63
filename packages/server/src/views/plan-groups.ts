import { assert } from '../base/assert.ts'
import { sqlTypes } from '../query/compile/print-expression.ts'
import type { Aggregate, Expression, ValueType } from '../query/tree/query.ts'
import { type Flow, type FlowColumn, weighted } from './delta-relation.ts'
import {
  type ComputedColumn,
  handedTable,
  hashOf,
  indexedBytesMax,
  once,
  sameKeys,
  type Tally,
  tableOf,
} from './group-state.ts'
import { Obstacle } from './not-incremental.ts'
import type { Mode, Writing } from './statement-writing.ts'

type AggregateCall = Aggregate & { readonly type: ValueType }

/**
 * Groups by the first columns of what comes in, with aggregates over the others. `input` is what has to come in, `rows`
 * the tables that are kept and the groups as a flow, whose columns are the keys and then the aggregates.
 */
export function planGroups(
  keys: readonly Expression[],
  calls: readonly AggregateCall[],
): {
  readonly input: readonly Expression[]
  readonly rows: (input: Flow, options: GroupOptions) => Grouped
} {
  const columns = [...keys]
  const columnOf = (expression: Expression): string => {
    const text = JSON.stringify(expression)
    const found = columns.findIndex(
      (each, at) => at >= keys.length && JSON.stringify(each) === text,
    )
    return `c${found >= 0 ? found : columns.push(expression) - 1}`
  }
  const plan: Plan = { sums: [], bags: [], picks: [] }
  const values = calls.map((call) => valueText(call, { plan, columnOf }))
  return {
    input: columns,
    rows: (input, options) => groupRows({ ...options, keys, calls, values, plan, input }),
  }
}

/** Sums over what comes in or over the change of a bag, the bags of values, and the extremes that are looked up. */
type Plan = {
  readonly sums: Sum[]
  readonly bags: Bag[]
  readonly picks: Pick[]
}
type Sum = {
  readonly type: 'int8' | 'numeric'
  /** SQL for an occurrence `part` of weight `part.w`. */
  readonly of: string
  readonly bag: Bag | undefined
}
/** The different values of an argument in each group, each with how often it occurs. */
type Bag = {
  readonly value: string
  readonly test: string
  readonly type: ValueType
  isOrdered: boolean
  isCounted: boolean
}
type Pick = { readonly bag: Bag; readonly descending: boolean }

type Naming = { readonly plan: Plan; readonly columnOf: (expression: Expression) => string }

/** SQL of an aggregate's value, of the columns of the group's row `t`. */
function valueText(call: AggregateCall, naming: Naming): string {
  const { plan, columnOf } = naming
  refuseUnkept(call)
  const [argument] = call.arguments
  const filter = call.filter === undefined ? '' : ` AND part.${columnOf(call.filter)}`
  const sum = (type: Sum['type'], of: string, bag?: Bag) =>
    `t.a${indexOf(plan.sums, { type, of, bag })}`
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
      return `t.p${indexOf(plan.picks, { bag: found, descending: call.name === 'max' })}`
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

function refuseUnkept(call: AggregateCall): void {
  const kept = ['count', 'sum', 'avg', 'min', 'max', 'bool_and', 'bool_or', 'every']
  if (!kept.includes(call.name)) throw new Obstacle(`the aggregate ${call.name}`)
  const isBag = ['count', 'min', 'max', 'bool_and', 'bool_or', 'every'].includes(call.name)
  if (call.distinct && !isBag) throw new Obstacle(`${call.name}(DISTINCT …)`)
}

function indexOf<T>(list: T[], wanted: T): number {
  const values = (each: T) => Object.values(each as object)
  const found = list.findIndex((each) =>
    values(each).every((value, at) => value === values(wanted)[at]),
  )
  return found >= 0 ? found : list.push(wanted) - 1
}

export type GroupOptions = {
  /** Names the tables. */
  readonly suffix: string
  /** Whether groups are looked up by their keys. */
  readonly isJoined: boolean
}

export type Grouped = {
  /** The tables of values in groups, which come before the groups. */
  readonly bags: readonly Tally[]
  readonly tally: Tally
  /** The keys and then the aggregates, as columns c0, c1 ... */
  readonly flow: Flow
  /** SQL of rows of the groups' table (SQL) with those columns beside. */
  readonly withValues: (rows: string) => string
}

type Groups = GroupOptions & {
  readonly keys: readonly Expression[]
  readonly calls: readonly AggregateCall[]
  readonly values: readonly string[]
  readonly plan: Plan
  readonly input: Flow
}

function groupRows(groups: Groups): Grouped {
  const { keys, calls, values, plan, suffix, isJoined } = groups
  const bags = new Map(plan.bags.map((bag, at) => [bag, bagTally(bag, groups, `${suffix}_${at}`)]))
  const picks = plan.picks.map((pick, at): ComputedColumn => {
    const tally = bags.get(pick.bag)
    const of = (writing: Writing) => extremeText(pick, { tally, count: keys.length, writing })
    return { name: `p${at}`, type: sqlTypes[pick.bag.type], of, isFixed: false }
  })
  const tally: Tally = {
    suffix,
    keys: keys.map(({ type }) => sqlTypes[type]),
    sums: plan.sums.map(({ type }) => type),
    more: picks,
    always: keys.length === 0,
    handsOn: true,
    indexes: isJoined ? keys.map((_, at) => `USING hash (k${at})`) : [],
    occurrences: (mode, writing) => occurrences(groups, { mode, writing, bags }),
  }
  const list = [...keys.map((_, at) => `t.k${at}`), ...values].map(
    (text, at) => `${text} AS c${at}`,
  )
  const flow: Flow = {
    columns: [
      { name: 'leaf', type: 'int8' },
      ...[...keys, ...calls].map(
        ({ type }, at): FlowColumn => ({ name: `c${at}`, type: sqlTypes[type] }),
      ),
    ],
    found: { columns: new Set(isJoined ? keys.keys() : []), fields: false },
    rows: ({ place }) =>
      `SELECT ${['t.leaf', ...list].join(', ')} FROM ${tableOf(tally, place)} AS t`,
    // What a row was has a leaf of its own.
    change: ({ place }) =>
      `SELECT ${['t.leaf * t.w AS leaf', ...list].join(', ')}, t.w FROM ${handedTable(tally, place)} AS t`,
  }
  return {
    bags: [...bags.values()],
    tally,
    flow,
    withValues: (rows) => `SELECT t.*, ${list.join(', ')} FROM (${rows}) AS t ${once}`,
  }
}

type Making = {
  readonly mode: Mode
  readonly writing: Writing
  readonly bags: ReadonlyMap<Bag, Tally>
}

/** Of the groups: those of what comes in, and of the different values that came and went. */
function occurrences(
  { keys, plan, input }: Groups,
  { mode, writing, bags }: Making,
): readonly string[] {
  const list = (from: string, n: string, bag: Bag | undefined) =>
    [
      ...keys.map((_, at) => `part.${from}${at} AS k${at}`),
      `${n} AS n`,
      ...plan.sums.map((sum, at) => `${sum.bag === bag ? sum.of : `0`} AS a${at}`),
    ].join(', ')
  const counted = plan.bags.filter(({ isCounted }) => isCounted)
  return [
    `SELECT ${list('c', 'part.w', undefined)} FROM (${weighted(input, mode, writing)} ${once}) AS part`,
    ...counted.map((bag) => {
      const tally = bags.get(bag)
      assert(tally !== undefined, 'a bag has a table')
      const from =
        mode === 'advance'
          ? handedTable(tally, writing.place)
          : `(SELECT bag.*, 1 AS w FROM ${tableOf(tally, writing.place)} AS bag)`
      return `SELECT ${list('k', '0', bag)} FROM ${from} AS part`
    }),
  ]
}

function bagTally(bag: Bag, { keys, input }: Groups, suffix: string): Tally {
  const leading = keys.map((_, at) => `fresh.k${at}`)
  const value = `k${keys.length}`
  return {
    suffix,
    keys: [...keys.map(({ type }) => sqlTypes[type]), sqlTypes[bag.type]],
    sums: [],
    more: bag.isOrdered
      ? [
          { name: 'part', type: 'int8', of: () => hashOf(leading), isFixed: true },
          {
            name: 'long',
            type: 'bool',
            of: () => `octet_length(fresh.${value}::text) > ${indexedBytesMax}`,
            isFixed: true,
          },
        ]
      : [],
    always: false,
    handsOn: bag.isCounted,
    indexes: bag.isOrdered ? [`(part, ${value}) WHERE NOT long`, `(part) WHERE long`] : [],
    occurrences: (mode, writing) => {
      const list = keys.map((_, at) => `part.c${at} AS k${at}`)
      return [
        `SELECT ${[...list, `${bag.value} AS ${value}`].join(', ')}, part.w AS n FROM (${weighted(input, mode, writing)}) AS part WHERE ${bag.test}`,
      ]
    },
  }
}

type Looking = {
  readonly tally: Tally | undefined
  readonly count: number
  readonly writing: Writing
}

/**
 * The least or greatest of a group's values, in the order of `sortBy`; lists and objects are none. They stand at both
 * ends of that order: those of the end where it begins are passed over by the index, and where the first value after
 * them is of the other end, there is no value between.
 */
function extremeText({ bag, descending }: Pick, { tally, count, writing }: Looking): string {
  assert(tally !== undefined, 'a bag has a table')
  const value = `bag.k${count}`
  const ends = [`${value} >= '""'::jsonb`, `${value} <= 'true'::jsonb`]
  const [begin, end] =
    bag.type !== 'json' ? ['TRUE', 'TRUE'] : descending ? ends.toReversed() : ends
  const order = `ORDER BY ${value}${descending ? ' DESC' : ''} LIMIT 1`
  const one = (test: string) =>
    `(SELECT ${value} FROM ${tableOf(tally, writing.place)} AS bag
  WHERE bag.part = fresh.hash AND ${test}${sameKeys(count, 'bag', 'fresh')} AND ${begin} ${order})`
  return `(SELECT CASE WHEN ${end} THEN ${value} END FROM (${one('NOT bag.long')} UNION ALL ${one('bag.long')}) AS bag ${order})`
}
