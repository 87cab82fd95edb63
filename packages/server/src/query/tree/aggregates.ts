import type { AggregateDefinition } from './aggregate-definition.ts'
import { sumBytes } from './bytes.ts'
import { printFromDouble } from './functions/double-precision.ts'
import {
  type FunctionDefinition,
  printCount,
  printPositiveCount,
} from './functions/function-definition.ts'
import { sumWithMarks } from './functions/json-operators.ts'
import { findItems } from './make-expression.ts'
import { statistics } from './statistics.ts'

type Print = AggregateDefinition['print']
const plain =
  (name: string): Print =>
  (args, { inside, after }) =>
    `${name}(${inside(args.join(', '))})${after}`
const ofNumber = (name: string): AggregateDefinition => ({
  parameters: ['number'],
  result: 'number',
  print: plain(name),
})
const ofBoolean = (name: string): AggregateDefinition => ({
  parameters: ['boolean'],
  result: 'boolean',
  print: plain(name),
})
/** Prints a sum of intervals, NULL where it could not be held; each part of an interval adds up by itself. */
const intervalSum: Print = ([value = ''], { inside, after }) => {
  const add = (part: string) => `sum(${inside(part)})${after}`
  const of = (unit: string) => `extract(${unit} FROM ${value})`
  const months = add(`${of('year')} * 12 + ${of('month')}`)
  const days = add(of('day'))
  const hours = add(of('hour'))
  const seconds = add(`${of('minute')} * 60 + ${of('second')}`)
  const whole = `trunc(${seconds} / 3600)`
  return `CASE WHEN abs(${months}) <= 1e9 AND abs(${days}) <= 1e9 AND abs(${hours}) + abs(${whole}) <= 1e9 THEN make_interval(months => (${months})::int4, days => (${days})::int4, hours => (${hours} + ${whole})::int4, secs => (${seconds} - ${whole} * 3600)::float8) END`
}
/** Gives the digits of the sum, not those of the numbers summed up; so a mean is a function of sum and count. */
const sum: Print = (args, call, type) =>
  type === 'interval'
    ? intervalSum(args, call, type)
    : `trim_scale(${plain('sum')(args, call, type)})`
const list: AggregateDefinition = {
  parameters: ['json'],
  result: 'json',
  held: 'document',
  bytes: sumWithMarks,
  print: plain('jsonb_agg'),
}

/** The least and the greatest of JSON values in the order of `sortBy`: strings, numbers, truth values; no others. */
const extreme = (name: 'min' | 'max'): AggregateDefinition => ({
  parameters: ['same'],
  result: 'same',
  whole: 'same',
  check: ([value]) =>
    value !== undefined && findItems(value) !== undefined
      ? `${name} of arrays, which have no order here`
      : undefined,
  print: ([value = ''], { inside, after }, type) => {
    if (type === 'boolean')
      return `${name === 'min' ? 'bool_and' : 'bool_or'}(${inside(value)})${after}`
    const plainly = `${name}(${inside(value)})${after}`
    if (type !== 'json') return type === 'number' ? `trim_scale(${plainly})` : plainly
    const of = (json: string, what: string) =>
      `CASE jsonb_typeof(${value}) WHEN '${json}' THEN ${what} END`
    const kinds = [
      `to_jsonb(${name}(${inside(of('string', `${value} #>> '{}'`))})${after})`,
      `to_jsonb(trim_scale(${name}(${inside(of('number', `${value}::numeric`))})${after}))`,
      `to_jsonb(${name === 'min' ? 'bool_and' : 'bool_or'}(${inside(of('boolean', `${value}::boolean`))})${after})`,
    ]
    return `coalesce(${(name === 'min' ? kinds : kinds.toReversed()).join(', ')})`
  },
})

/** An object of names and values; no member can have NULL for a name, so such rows do not count. */
const object: AggregateDefinition = {
  parameters: ['printable', 'json'],
  result: 'json',
  held: 'document',
  bytes: sumWithMarks,
  print: ([name = '', value = ''], { inside, afterWhere }) =>
    `jsonb_object_agg(${inside(`${name}, ${value}`)})${afterWhere(`${name} IS NOT NULL`)}`,
}

/**
 * A value that is not NULL: the least one, so that the same records always give the same value. Lists and objects, of
 * which `min` has none, come last.
 */
const anyValue: AggregateDefinition = {
  parameters: ['same'],
  result: 'same',
  whole: 'same',
  held: 'same',
  windowless: true,
  print: (args, call, type) => {
    const [value = ''] = args
    const least = extreme('min').print(args, call, type)
    if (type !== 'json') return least
    const others = `(array_agg(${value} ORDER BY ${value})${call.afterWhere(`jsonb_typeof(${value}) IN ('object', 'array')`)})[1]`
    return `coalesce(${least}, ${others})`
  },
}

/** The first value by the order given, be it NULL. */
const first: AggregateDefinition = {
  parameters: ['same'],
  result: 'same',
  whole: 'same',
  ordered: true,
  print: (args, call) => `(${plain('array_agg')(args, call, 'json')})[1]`,
}

/** Every aggregate that SQL may use, by its lower-case name. The documentation is made from it. */
export const aggregates: ReadonlyMap<string, AggregateDefinition> = new Map<
  string,
  AggregateDefinition
>([
  [
    'count',
    {
      parameters: ['same'],
      result: 'number',
      whole: true,
      print: ([value], { inside, after }) =>
        `(count(${value === undefined ? '*' : inside(value)})${after})::numeric`,
    },
  ],
  ['sum', { parameters: ['amount'], result: 'same', whole: 'same', print: sum }],
  [
    'avg',
    {
      parameters: ['amount'],
      result: 'same',
      print: (args, call, type) =>
        `(${sum(args, call, type)} / nullif(${plain('count')(args, call, type)}, 0))`,
    },
  ],
  ['min', extreme('min')],
  ['max', extreme('max')],
  ['bool_and', ofBoolean('bool_and')],
  ['bool_or', ofBoolean('bool_or')],
  ['every', ofBoolean('bool_and')],
  ['stddev', ofNumber('stddev')],
  ['stddev_pop', ofNumber('stddev_pop')],
  ['stddev_samp', ofNumber('stddev_samp')],
  ['variance', ofNumber('variance')],
  ['var_pop', ofNumber('var_pop')],
  ['var_samp', ofNumber('var_samp')],
  [
    'string_agg',
    {
      parameters: ['printable', 'text'],
      result: 'text',
      bytes: sumBytes,
      print: plain('string_agg'),
    },
  ],
  ['array_agg', { ...list, held: 'items' }],
  ['json_agg', list],
  ['jsonb_agg', list],
  ['jsonb_object_agg', object],
  ['json_object_agg', object],
  ['first', first],
  ['any_value', anyValue],
  ...Object.entries(statistics),
])

export type WindowDefinition = Omit<FunctionDefinition, 'variadic' | 'print'> & {
  readonly print: (args: readonly string[], over: string) => string
}

const ranking = (name: string): WindowDefinition => ({
  parameters: [],
  result: 'number',
  whole: true,
  print: (_args, over) => `(${name}()${over})::numeric`,
})
const share = (name: string): WindowDefinition => ({
  parameters: [],
  result: 'number',
  print: (_args, over) => printFromDouble(`${name}()${over}`),
})
const shifted = (name: string): WindowDefinition => ({
  parameters: ['same', 'number', 'same'],
  optional: 2,
  result: 'same',
  whole: 'same',
  print: ([value, rows, otherwise], over) => {
    const offset = rows === undefined ? [] : [printCount(rows)]
    const rest = otherwise === undefined ? [] : [otherwise]
    return `${name}(${[value, ...offset, ...rest].join(', ')})${over}`
  },
})
const atEnd = (name: string): WindowDefinition => ({
  parameters: ['same'],
  result: 'same',
  whole: 'same',
  print: ([value], over) => `${name}(${value})${over}`,
})

/** Window functions beside the aggregates, which all may stand over a window. */
export const windowFunctions: ReadonlyMap<string, WindowDefinition> = new Map<
  string,
  WindowDefinition
>([
  ['row_number', ranking('row_number')],
  ['rank', ranking('rank')],
  ['dense_rank', ranking('dense_rank')],
  ['percent_rank', share('percent_rank')],
  ['cume_dist', share('cume_dist')],
  [
    'ntile',
    {
      parameters: ['number'],
      result: 'number',
      whole: true,
      print: ([groups], over) => `(ntile(${printPositiveCount(groups)})${over})::numeric`,
    },
  ],
  ['lag', shifted('lag')],
  ['lead', shifted('lead')],
  ['first_value', atEnd('first_value')],
  ['last_value', atEnd('last_value')],
  [
    'nth_value',
    {
      parameters: ['same', 'number'],
      result: 'same',
      whole: 'same',
      print: ([value, rows], over) => `nth_value(${value}, ${printPositiveCount(rows)})${over}`,
    },
  ],
])
