import { limits } from '@tollbase/contract/limits'
import { printBounded } from '../../run-bound.ts'
import type { Expression } from '../query.ts'
import type { FunctionDefinition } from './function-definition.ts'

/** One row for each function that gives rows in FROM: its types, its bounds, and its SQL. */
export type RowFunctionDefinition = Pick<
  FunctionDefinition,
  'parameters' | 'optional' | 'variadic' | 'result' | 'whole' | 'zone' | 'check'
> & {
  /** The name of its column; not given: its alias, or its own name. */
  readonly column?: string
  /** Its second column. */
  readonly second?: { readonly name: string; readonly result: 'json' | 'text' }
  /** True of a second form of a function, which has a name of its own here alone. */
  readonly isForm?: true
  /** Prints a call that gives the rows; no value may make it fail. */
  readonly print: (args: readonly string[]) => string
}

/** Rows of a list; of any other value there are none. */
const elements = (name: string, result: 'json' | 'text'): RowFunctionDefinition => ({
  parameters: ['document'],
  result,
  column: 'value',
  print: ([list]) => `${name}(CASE jsonb_typeof(${list}) WHEN 'array' THEN ${list} END)`,
})

function printObject(json: string | undefined): string {
  return `CASE jsonb_typeof(${json}) WHEN 'object' THEN ${json} END`
}

/** Members of an object, by name; of any other value there are none. */
const members = (name: string, result: 'json' | 'text'): RowFunctionDefinition => ({
  parameters: ['document'],
  result: 'text',
  column: 'key',
  second: { name: 'value', result },
  print: ([object]) => `${name}(${printObject(object)})`,
})

const rowsMax = limits.sqlSeriesRowsMax

const series: RowFunctionDefinition = {
  parameters: ['number', 'number', 'number'],
  optional: 1,
  result: 'number',
  whole: 'same',
  check: (args) => {
    const [from = Number.NaN, to = Number.NaN, by = 1] = args.map(getNumber)
    return (to - from) / by >= rowsMax ? `generate_series of more than ${rowsMax} rows` : undefined
  },
  print: ([from = '', to = '', by]) => {
    const step = by === undefined ? '1' : `nullif(${by}, 0)`
    const test = `((${to} - ${from}) / ${step} >= ${rowsMax})`
    return `generate_series(${from}, ${printBounded(to, { bound: 'series', test, type: 'numeric' })}, ${step})`
  },
}

/** A step whose parts go both ways (1 month, -30 days) could stand still. */
const seriesOfTimes: RowFunctionDefinition = {
  isForm: true,
  parameters: ['timestamp', 'timestamp', 'interval'],
  result: 'timestamp',
  zone: 'same',
  check: ([, , step]) => {
    const text = step?.kind === 'constant' && step.value !== null ? String(step.value) : ''
    const isMoving = /[1-9]/.test(text) && !(text.includes('-') && /(^|[ +])\d/.test(text))
    return isMoving
      ? undefined
      : "generate_series with a step that is not written out, as interval '1 day', or whose parts go both ways"
  },
  print: ([from = '', to = '', step = '']) => {
    const test = `(extract(epoch FROM ${to} - ${from}) / extract(epoch FROM ${step}) >= ${rowsMax})`
    return `generate_series(${from}, ${printBounded(to, { bound: 'series', test, type: 'timestamp' })}, ${step})`
  },
}

const ofTimes = 'generate_series of times'

/** Every function that gives rows in FROM, by its lower-case name; the documentation is made from it. */
export const rowFunctions: ReadonlyMap<string, RowFunctionDefinition> = new Map<
  string,
  RowFunctionDefinition
>([
  ['jsonb_array_elements', elements('jsonb_array_elements', 'json')],
  ['json_array_elements', elements('jsonb_array_elements', 'json')],
  ['jsonb_array_elements_text', elements('jsonb_array_elements_text', 'text')],
  ['json_array_elements_text', elements('jsonb_array_elements_text', 'text')],
  ['jsonb_each', members('jsonb_each', 'json')],
  ['jsonb_each_text', members('jsonb_each_text', 'text')],
  [
    'jsonb_object_keys',
    {
      parameters: ['document'],
      result: 'text',
      print: ([object]) => `jsonb_object_keys(${printObject(object)})`,
    },
  ],
  [
    'unnest',
    {
      parameters: ['same'],
      variadic: true,
      result: 'same',
      whole: 'same',
      print: (args) => `unnest(ARRAY[${args.join(', ')}])`,
    },
  ],
  ['generate_series', series],
  [ofTimes, seriesOfTimes],
])

/** Lists the names by which statements call them. */
export function listRowFunctions(): readonly string[] {
  return [...rowFunctions].flatMap(([name, { isForm }]) => (isForm === true ? [] : [name]))
}

/** Returns the name of the row by the types of the arguments. */
export function chooseRowFunction(name: string, args: readonly Expression[]): string {
  const isOfTimes = args.some(({ type }) => ['timestamp', 'date', 'interval'].includes(type))
  return name === 'generate_series' && isOfTimes ? ofTimes : name
}

function getNumber(expression: Expression): number {
  const isNumber = expression.kind === 'constant' && expression.value !== null
  return isNumber ? Number(expression.value) : Number.NaN
}
