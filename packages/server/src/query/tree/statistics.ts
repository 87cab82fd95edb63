import type { AggregateDefinition } from './aggregate-definition.ts'
import { doubleMax, printDouble, printFromDouble } from './functions/double-precision.ts'
import { getText } from './functions/function-definition.ts'
import type { Expression } from './query.ts'

/** Numbers whose squares, and sums of them, a number of double precision still holds; others count as NULL. */
const squaredMax = '1e100'

const ofPairs = (name: string): AggregateDefinition => ({
  parameters: ['number', 'number'],
  result: 'number',
  print: ([y = '', x = ''], { inside, after }) => {
    const pair = [y, x].map((each) => printDouble(each, squaredMax)).join(', ')
    return printFromDouble(`${name}(${inside(pair)})${after}`)
  },
})

/** A mean between the two values around a place in the order; intervals are exact. */
const continuous =
  (fraction: string, [value = '']: readonly string[]): AggregateDefinition['print'] =>
  (_, { after, direction }, type) =>
    type === 'interval'
      ? `percentile_cont(${fraction}) WITHIN GROUP (ORDER BY ${value}${direction})${after}`
      : printFromDouble(
          `percentile_cont(${fraction}) WITHIN GROUP (ORDER BY ${printDouble(value, doubleMax)}${direction})${after}`,
        )

/** A place from 0 to 1 in the order; PostgreSQL would fail at any other. */
function printFraction(fraction = ''): string {
  return `(CASE WHEN ${fraction} BETWEEN 0 AND 1 THEN ${fraction} END)::float8`
}

function checkFraction([, fraction]: readonly Expression[]): string | undefined {
  if (fraction?.kind === 'parameter') return undefined
  const number = fraction?.kind === 'constant' ? Number(getText(fraction)) : Number.NaN
  return number >= 0 && number <= 1
    ? undefined
    : 'a percentile that is no number from 0 to 1, written out or given as a parameter; of several write one call for each'
}

/** Aggregates of statistics, by their lower-case names. */
export const statistics: Readonly<Record<string, AggregateDefinition>> = {
  percentile_cont: {
    parameters: ['amount', 'number'],
    result: 'same',
    within: true,
    check: checkFraction,
    print: (args, call, type) => continuous(printFraction(args[1]), args)(args, call, type),
  },
  percentile_disc: {
    parameters: ['same', 'number'],
    result: 'same',
    whole: 'same',
    within: true,
    check: checkFraction,
    print: ([value, fraction], { after, direction }) =>
      `percentile_disc(${printFraction(fraction)}) WITHIN GROUP (ORDER BY ${value}${direction})${after}`,
  },
  mode: {
    parameters: ['same'],
    result: 'same',
    whole: 'same',
    within: true,
    print: ([value], { after, direction }) =>
      `mode() WITHIN GROUP (ORDER BY ${value}${direction})${after}`,
  },
  median: {
    parameters: ['amount'],
    result: 'same',
    windowless: true,
    print: (args, call, type) => continuous('0.5', args)(args, call, type),
  },
  approx_count_distinct: {
    parameters: ['same'],
    result: 'number',
    whole: true,
    windowless: true,
    standsFor: 'count',
    print: ([value], { after }) => `(count(DISTINCT ${value})${after})::numeric`,
  },
  corr: ofPairs('corr'),
  covar_pop: ofPairs('covar_pop'),
  covar_samp: ofPairs('covar_samp'),
  regr_slope: ofPairs('regr_slope'),
  regr_intercept: ofPairs('regr_intercept'),
  regr_r2: ofPairs('regr_r2'),
}
