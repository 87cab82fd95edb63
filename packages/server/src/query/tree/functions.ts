import { addressPattern, localBlocks } from '../address.ts'
import { quoteText } from '../sql-text.ts'
import type { ValueType } from './query.ts'

/**
 * `printable`: anything, as text. `same`: all arguments of it become one type. `time`: a timestamp or an interval.
 * `unit`, `block` (of addresses) and `format` (of a time) are literals.
 */
export type ParameterKind =
  | Exclude<ValueType, 'null'>
  | 'printable'
  | 'same'
  | 'time'
  | 'unit'
  | 'block'
  | 'format'

export type FunctionDefinition = {
  readonly parameters: readonly ParameterKind[]
  /** The number of parameters that may be left out. */
  readonly optional?: number
  /** True if the last parameter may be repeated. */
  readonly variadic?: boolean
  /** The type of the result; `same`: the common type of the arguments. */
  readonly result: Exclude<ValueType, 'null'> | 'same'
  /** True if PostgreSQL gives an integer; `same`: if all numbers that go into it are integers. */
  readonly whole?: true | 'same'
  /** Prints the call; no row may make it fail. */
  readonly print: (args: readonly string[]) => string
}

type Print = FunctionDefinition['print']
const plain =
  (name: string): Print =>
  (args) =>
    `${name}(${args.join(', ')})`
/** The most characters or rows that a count can ask for; no text and no answer has as many. */
const countMax = 100_000_000
/**
 * Prints a number as a whole one that PostgreSQL's functions take; NULL stays NULL. Buckets of width 1 are the one
 * expression that cuts at both ends and names the number once.
 */
export const printCount = (text = '0') =>
  `(width_bucket(trunc(${text}), ${-countMax}, ${countMax}, ${2 * countMax}) - ${countMax + 1})`
/** Prints a count of at least 1, NULL for less: PostgreSQL's own functions would fail. */
export const printPositiveCount = (text = '0') => `nullif(greatest(${printCount(text)}, 0), 0)`
export const printNonZero = (text = '') => `nullif(${text}, 0)`

const textToText = (name: string): FunctionDefinition => ({
  parameters: ['text'],
  result: 'text',
  print: plain(name),
})
const numberToNumber = (name: string): FunctionDefinition => ({
  parameters: ['number'],
  result: 'number',
  print: plain(name),
})
const trimmed = (name: string): FunctionDefinition => ({
  parameters: ['text', 'text'],
  optional: 1,
  result: 'text',
  print: plain(name),
})
const lengthOf: FunctionDefinition = {
  parameters: ['text'],
  result: 'number',
  whole: true,
  print: ([text]) => `length(${text})::numeric`,
}
const part: FunctionDefinition = {
  parameters: ['unit', 'time'],
  result: 'number',
  print: ([unit, time]) => `pg_catalog.extract(${unit}, ${time})`,
}
const substring: FunctionDefinition = {
  parameters: ['text', 'number', 'number'],
  optional: 1,
  result: 'text',
  print: ([text, from, length]) =>
    length === undefined
      ? `substr(${text}, ${printCount(from)})`
      : `substr(${text}, ${printCount(from)}, nullif(greatest(${printCount(length)}, -1), -1))`,
}
const padded = (name: string): FunctionDefinition => ({
  parameters: ['text', 'number', 'text'],
  optional: 1,
  result: 'text',
  print: ([text, length, ...fill]) => `${name}(${[text, printCount(length), ...fill].join(', ')})`,
})
const rounded = (name: string): FunctionDefinition => ({
  parameters: ['number', 'number'],
  optional: 1,
  result: 'number',
  print: ([number, digits]) =>
    digits === undefined ? `${name}(${number})` : `${name}(${number}, ${printCount(digits)})`,
})
const ofSame = (name: string): FunctionDefinition => ({
  parameters: ['same'],
  variadic: true,
  result: 'same',
  whole: 'same',
  print: plain(name),
})
const typeOf: FunctionDefinition = {
  parameters: ['json'],
  result: 'text',
  print: plain('jsonb_typeof'),
}
const arrayLength: FunctionDefinition = {
  parameters: ['json'],
  result: 'number',
  whole: true,
  print: ([json]) =>
    `CASE jsonb_typeof(${json}) WHEN 'array' THEN jsonb_array_length(${json})::numeric END`,
}
/** The cast inside is safe: the pattern lets only addresses through. */
const address = (test: (address: string, args: readonly string[]) => string): Print => {
  return ([text = '', ...args]) =>
    `CASE WHEN ${text} ~ ${quoteText(addressPattern)} THEN ${test(`(${text})::inet`, args)} ELSE (${text} IS NOT NULL AND NULL) END`
}
const isLocal = (text: string) => `${text} <<= ANY ('{${localBlocks.join(',')}}'::inet[])`
const guarded =
  (guard: (text: string) => string, name: string): Print =>
  ([text = '']) =>
    `CASE WHEN ${guard(text)} THEN ${name}(${text}) END`

/** Every scalar function that SQL may use, by its lower-case name. The documentation is made from it. */
export const functions: ReadonlyMap<string, FunctionDefinition> = new Map<
  string,
  FunctionDefinition
>([
  ['lower', textToText('lower')],
  ['upper', textToText('upper')],
  ['initcap', textToText('initcap')],
  ['reverse', textToText('reverse')],
  ['length', lengthOf],
  ['char_length', lengthOf],
  ['character_length', lengthOf],
  ['btrim', trimmed('btrim')],
  ['ltrim', trimmed('ltrim')],
  ['rtrim', trimmed('rtrim')],
  ['substr', substring],
  ['substring', substring],
  [
    'left',
    {
      parameters: ['text', 'number'],
      result: 'text',
      print: ([a, b]) => `left(${a}, ${printCount(b)})`,
    },
  ],
  [
    'right',
    {
      parameters: ['text', 'number'],
      result: 'text',
      print: ([a, b]) => `right(${a}, ${printCount(b)})`,
    },
  ],
  ['replace', { parameters: ['text', 'text', 'text'], result: 'text', print: plain('replace') }],
  [
    'translate',
    { parameters: ['text', 'text', 'text'], result: 'text', print: plain('translate') },
  ],
  ['concat', { parameters: ['printable'], variadic: true, result: 'text', print: plain('concat') }],
  [
    'concat_ws',
    {
      parameters: ['text', 'printable'],
      variadic: true,
      result: 'text',
      print: plain('concat_ws'),
    },
  ],
  ['starts_with', { parameters: ['text', 'text'], result: 'boolean', print: plain('starts_with') }],
  [
    'strpos',
    {
      parameters: ['text', 'text'],
      result: 'number',
      whole: true,
      print: (args) => `${plain('strpos')(args)}::numeric`,
    },
  ],
  [
    'position',
    {
      parameters: ['text', 'text'],
      result: 'number',
      whole: true,
      print: (args) => `${plain('strpos')(args)}::numeric`,
    },
  ],
  [
    'split_part',
    {
      parameters: ['text', 'text', 'number'],
      result: 'text',
      print: ([text, by, number]) =>
        `split_part(${text}, ${by}, ${printNonZero(printCount(number))})`,
    },
  ],
  ['lpad', padded('lpad')],
  ['rpad', padded('rpad')],

  ['abs', { ...numberToNumber('abs'), whole: 'same' }],
  ['ceil', numberToNumber('ceil')],
  ['ceiling', numberToNumber('ceil')],
  ['floor', numberToNumber('floor')],
  ['sign', numberToNumber('sign')],
  ['round', rounded('round')],
  ['trunc', rounded('trunc')],
  [
    'div',
    {
      parameters: ['number', 'number'],
      result: 'number',
      print: ([left, right]) => `div(${left}, ${printNonZero(right)})`,
    },
  ],
  [
    'mod',
    {
      parameters: ['number', 'number'],
      result: 'number',
      whole: 'same',
      print: ([left, right]) => `mod(${left}, ${printNonZero(right)})`,
    },
  ],
  [
    'power',
    {
      parameters: ['number', 'number'],
      result: 'number',
      print: ([base, exponent]) =>
        `CASE WHEN abs(${exponent}) <= 100 AND abs(${base}) <= 1e30 AND (${base} > 0 OR (${exponent} >= 0 AND ${exponent} = trunc(${exponent}))) THEN power(${base}, ${exponent}) END`,
    },
  ],
  [
    'sqrt',
    { parameters: ['number'], result: 'number', print: guarded((n) => `${n} >= 0`, 'sqrt') },
  ],
  ['ln', { parameters: ['number'], result: 'number', print: guarded((n) => `${n} > 0`, 'ln') }],
  ['log', { parameters: ['number'], result: 'number', print: guarded((n) => `${n} > 0`, 'log') }],
  [
    'exp',
    {
      parameters: ['number'],
      result: 'number',
      print: guarded((n) => `abs(${n}) <= 1000`, 'exp'),
    },
  ],

  ['coalesce', ofSame('coalesce')],
  ['greatest', ofSame('greatest')],
  ['least', ofSame('least')],
  ['nullif', { ...ofSame('nullif'), parameters: ['same', 'same'], variadic: false }],

  [
    'date_trunc',
    {
      parameters: ['unit', 'timestamp'],
      result: 'timestamp',
      print: plain('date_trunc'),
    },
  ],
  ['date_part', part],
  ['extract', part],
  [
    'to_timestamp',
    {
      parameters: ['number'],
      result: 'timestamp',
      print: ([seconds]) =>
        `CASE WHEN ${seconds} BETWEEN 0 AND 253402300799 THEN '1970-01-01'::timestamp + ${seconds}::float8 * '1 second'::interval END`,
    },
  ],
  ['to_char', { parameters: ['timestamp', 'format'], result: 'text', print: plain('to_char') }],

  ['jsonb_typeof', typeOf],
  ['json_typeof', typeOf],
  ['jsonb_array_length', arrayLength],
  ['json_array_length', arrayLength],
  [
    'includes',
    {
      parameters: ['json', 'json'],
      result: 'boolean',
      print: ([list, item]) =>
        `CASE jsonb_typeof(${list}) WHEN 'array' THEN jsonb_typeof(${item}) IN ('string', 'number', 'boolean') AND ${list} @> ${item} END`,
    },
  ],
  [
    'in_cidr',
    {
      parameters: ['text', 'block'],
      result: 'boolean',
      print: address((text, [block]) => `${text} <<= ${block}::inet`),
    },
  ],
  [
    'is_local_ip',
    { parameters: ['text'], result: 'boolean', print: address((text) => isLocal(text)) },
  ],
  [
    'is_external_ip',
    { parameters: ['text'], result: 'boolean', print: address((text) => `NOT ${isLocal(text)}`) },
  ],
])

/** Units of date_trunc, date_part and EXTRACT. */
export const units: ReadonlySet<string> = new Set([
  'second',
  'minute',
  'hour',
  'day',
  'week',
  'month',
  'quarter',
  'year',
  'dow',
  'isodow',
  'doy',
  'epoch',
])
/** The units that a time cannot be cut to, and those that an interval does not have. */
export const unitsNotCut: ReadonlySet<string> = new Set(['dow', 'isodow', 'doy', 'epoch'])
export const unitsNotOfInterval: ReadonlySet<string> = new Set(['dow', 'isodow', 'doy', 'week'])
