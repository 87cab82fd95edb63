import { doubleMax, printDouble, printFromDouble } from './double-precision.ts'
import {
  type FunctionDefinition,
  printCount,
  printNonZero,
  printPlain,
  printPositiveCount,
} from './function-definition.ts'

const numberToNumber = (name: string): FunctionDefinition => ({
  parameters: ['number'],
  result: 'number',
  print: printPlain(name),
})
const rounded = (name: string): FunctionDefinition => ({
  parameters: ['number', 'number'],
  optional: 1,
  result: 'number',
  print: ([number, digits]) =>
    digits === undefined ? `${name}(${number})` : `${name}(${number}, ${printCount(digits)})`,
})
const divided = (name: string): FunctionDefinition => ({
  parameters: ['number', 'number'],
  result: 'number',
  print: printPlain(name),
})
/** NULL outside of the function's domain. */
const guarded = (guard: (text: string) => string, name: string): FunctionDefinition => ({
  parameters: ['number'],
  result: 'number',
  print: ([text = '']) => `CASE WHEN ${guard(text)} THEN ${name}(${text}) END`,
})

/** A function that PostgreSQL computes in double precision; `guard`: where it has a value. */
const inDouble = (name: string, guard?: (text: string) => string): FunctionDefinition => ({
  parameters: ['number'],
  result: 'number',
  isInexact: true,
  print: ([text = '']) => {
    const value = printFromDouble(`${name}(${printDouble(text, doubleMax)})`)
    return guard === undefined ? value : `CASE WHEN ${guard(text)} THEN ${value} END`
  },
})
const isSine = (text: string) => `abs(${text}) <= 1`

/** Functions of numbers, by their lower-case names. */
export const numberFunctions: Readonly<Record<string, FunctionDefinition>> = {
  abs: { ...numberToNumber('abs'), whole: 'same' },
  ceil: numberToNumber('ceil'),
  ceiling: numberToNumber('ceil'),
  floor: numberToNumber('floor'),
  sign: numberToNumber('sign'),
  round: rounded('round'),
  trunc: rounded('trunc'),
  div: {
    parameters: ['number', 'number'],
    result: 'number',
    print: ([left, right]) => `div(${left}, ${printNonZero(right)})`,
  },
  mod: {
    parameters: ['number', 'number'],
    result: 'number',
    whole: 'same',
    print: ([left, right]) => `mod(${left}, ${printNonZero(right)})`,
  },
  power: {
    parameters: ['number', 'number'],
    result: 'number',
    // NULL beyond the range of double precision, where PostgreSQL's own power would end: a decimal could go on.
    // A quotient has its digits in PostgreSQL 15 too, where power(2, -200) of decimals is 0.
    print: ([base, exponent]) =>
      `CASE WHEN abs(${exponent}) <= 1e9 AND coalesce(abs(${exponent} * log(nullif(abs(${base}), 0))), 0) <= 308 AND (${base} >= 0 OR ${exponent} = trunc(${exponent})) AND (${base} <> 0 OR ${exponent} >= 0) THEN CASE WHEN ${exponent} < 0 THEN 1 / power(${base}, - ${exponent}) ELSE power(${base}, ${exponent}) END END`,
  },
  width_bucket: {
    parameters: ['number', 'number', 'number', 'number'],
    result: 'number',
    whole: true,
    print: ([number, low, high, count]) =>
      `width_bucket(${number}, ${low}, nullif(${high}, ${low}), ${printPositiveCount(count)})::numeric`,
  },
  gcd: { ...divided('gcd'), whole: 'same' },
  lcm: { ...divided('lcm'), whole: 'same' },
  pi: { parameters: [], result: 'number', print: () => '3.141592653589793::numeric' },
  sqrt: guarded((number) => `${number} >= 0`, 'sqrt'),
  ln: guarded((number) => `${number} > 0`, 'ln'),
  log: {
    parameters: ['number', 'number'],
    optional: 1,
    result: 'number',
    // One number gives the logarithm to base 10; of two the first is the base.
    print: ([first, second]) =>
      second === undefined
        ? `CASE WHEN ${first} > 0 THEN log(${first}) END`
        : `CASE WHEN ${first} > 0 AND ${first} <> 1 AND ${second} > 0 THEN log(${first}, ${second}) END`,
  },
  log10: guarded((number) => `${number} > 0`, 'log'),
  exp: guarded((number) => `abs(${number}) <= 1000`, 'exp'),
  cbrt: inDouble('cbrt'),
  degrees: inDouble('degrees'),
  radians: inDouble('radians'),
  sin: inDouble('sin'),
  cos: inDouble('cos'),
  tan: inDouble('tan'),
  asin: inDouble('asin', isSine),
  acos: inDouble('acos', isSine),
  atan: inDouble('atan'),
  atan2: {
    parameters: ['number', 'number'],
    result: 'number',
    isInexact: true,
    print: (args) =>
      printFromDouble(`atan2(${args.map((each) => printDouble(each, doubleMax)).join(', ')})`),
  },
}

/** The functions that PostgreSQL's operators of numbers stand for. */
export const numberOperators: ReadonlyMap<string, string> = new Map([['^', 'power']])

const ofSame = (name: string): FunctionDefinition => ({
  parameters: ['same'],
  variadic: true,
  result: 'same',
  whole: 'same',
  zone: 'same',
  held: 'same',
  print: printPlain(name),
})

/** Functions that choose one of their arguments. */
export const choosingFunctions: Readonly<Record<string, FunctionDefinition>> = {
  coalesce: ofSame('coalesce'),
  greatest: ofSame('greatest'),
  least: ofSame('least'),
  nullif: { ...ofSame('nullif'), parameters: ['same', 'same'], variadic: false },
}
