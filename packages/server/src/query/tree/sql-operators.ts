import { limits } from '@tollbase/contract/limits'
import { printBounded } from '../run-bound.ts'
import { makeBytes, sumBytes } from './bytes.ts'
import {
  type FunctionDefinition,
  getText,
  printCount,
  printInfix,
  printNonZero,
  printPlain,
} from './functions/function-definition.ts'
import { jsonOperators, sumWithMarks } from './functions/json-operators.ts'
import { countPadded } from './functions/text.ts'
import { printFormattedTime } from './functions/time-format.ts'
import type { Expression } from './query.ts'
import { printIntervalSum, printIntervalTimes, printMoved, printMovedDate } from './time-bounds.ts'

const arithmetic = (sign: string): FunctionDefinition => ({
  parameters: ['number', 'number'],
  result: 'number',
  whole: 'same',
  print: printInfix(sign),
})
const moved = (sign: '+' | '-'): FunctionDefinition => ({
  parameters: ['timestamp', 'interval'],
  result: 'timestamp',
  zone: 'same',
  print: (args, expressions) => printMoved(sign, args, expressions),
})
const movedDate = (sign: '+' | '-'): FunctionDefinition => ({
  parameters: ['date', 'number'],
  result: 'date',
  print: (args, expressions) => printMovedDate(sign, args, expressions),
})
const ofIntervals = (sign: '+' | '-'): FunctionDefinition => ({
  parameters: ['interval', 'interval'],
  result: 'interval',
  print: (args, expressions) => printIntervalSum(sign, args, expressions),
})
const ofInterval = (sign: '*' | '/'): FunctionDefinition => ({
  parameters: ['interval', 'number'],
  result: 'interval',
  print: ([interval = '', number = '']) => printIntervalTimes(interval, sign, number),
})
/**
 * The operators that SQL may use, comparisons aside, by their sign; those of times by sign and types. `next step` is
 * what WITH RECURSIVE counts by.
 */
export const operators: ReadonlyMap<string, FunctionDefinition> = new Map<
  string,
  FunctionDefinition
>([
  [
    'next step',
    {
      parameters: ['number'],
      result: 'number',
      print: ([step]) =>
        printBounded(`(${step} + 1)`, {
          bound: 'steps',
          test: `(${step} >= ${limits.sqlRecursionStepsMax})`,
          type: 'numeric',
        }),
    },
  ],
  ['+', arithmetic('+')],
  ['-', { ...arithmetic('-'), check: (args) => (args.some(isWrittenJson) ? lessJson : undefined) }],
  ['*', arithmetic('*')],
  [
    '/',
    {
      parameters: ['number', 'number'],
      result: 'number',
      print: ([left, right]) => `(${left} / ${printNonZero(right)})`,
    },
  ],
  [
    '%',
    {
      parameters: ['number', 'number'],
      result: 'number',
      whole: 'same',
      print: ([left, right]) => `(${left} % ${printNonZero(right)})`,
    },
  ],
  [
    '||',
    {
      parameters: ['printable', 'printable'],
      result: 'text',
      check: (args) => (args.some(isWrittenJson) ? joinedJson : undefined),
      bytes: sumBytes,
      print: printInfix('||'),
    },
  ],
  [
    '->',
    {
      parameters: ['json', 'text'],
      result: 'json',
      print: ([json, key]) => member(json, key),
    },
  ],
  [
    '->>',
    {
      parameters: ['json', 'text'],
      result: 'text',
      print: ([json, key]) => `(${member(json, key)} #>> '{}')`,
    },
  ],

  [
    '-> number',
    {
      parameters: ['json', 'number'],
      result: 'json',
      print: ([json, place]) => element(json, place),
    },
  ],
  [
    '->> number',
    {
      parameters: ['json', 'number'],
      result: 'text',
      print: ([json, place]) => `(${element(json, place)} #>> '{}')`,
    },
  ],
  [
    '#>',
    {
      parameters: ['json', 'path'],
      result: 'json',
      print: ([json, path]) => `nullif(${json} #> ${path}::text[], 'null'::jsonb)`,
    },
  ],
  [
    '#>>',
    {
      parameters: ['json', 'path'],
      result: 'text',
      print: ([json, path]) => `(${json} #>> ${path}::text[])`,
    },
  ],
  ...Object.entries(jsonOperators),
  ['?', { parameters: ['read json', 'text'], result: 'boolean', print: printInfix('?') }],

  ['time + interval', moved('+')],
  ['time - interval', moved('-')],
  [
    'time - time',
    { parameters: ['timestamp', 'timestamp'], result: 'interval', print: printInfix('-') },
  ],
  [
    'date - date',
    {
      parameters: ['date', 'date'],
      result: 'number',
      whole: true,
      print: ([left, right]) => `(${left} - ${right})::numeric`,
    },
  ],
  ['date + number', movedDate('+')],
  ['date - number', movedDate('-')],
  ['interval + interval', ofIntervals('+')],
  ['interval - interval', ofIntervals('-')],
  ['interval * number', ofInterval('*')],
  ['interval / number', ofInterval('/')],
  [
    'to_timestamp of text',
    {
      parameters: ['text', 'moment format'],
      result: 'timestamp',
      zone: 'moment',
      print: ([text = ''], [, format]) => printFormattedTime(text, getText(format)),
    },
  ],
  [
    'to_char of number',
    {
      parameters: ['number', 'number format'],
      result: 'text',
      bytes: (_parts, [, format], { bytesPerChar }) =>
        makeBytes(64 + bytesPerChar * getText(format).length),
      print: printPlain('to_char'),
    },
  ],
  // The cast to char(n), which fills up with blanks; whatever takes it as a text takes these away again.
  [
    'char',
    {
      parameters: ['text', 'number'],
      result: 'text',
      bytes: countPadded,
      print: ([text, length]) => `rpad(${text}, ${printCount(length)})`,
    },
  ],
  // The cast to real, of about seven digits; NULL beyond its range.
  [
    'real',
    {
      parameters: ['number'],
      result: 'number',
      print: ([number]) =>
        `CASE WHEN abs(${number}) <= 3.4028235e38 THEN round(${number}, 45)::float4::text::numeric END`,
    },
  ],
  // An object of names and values; made of a sub-query's columns, for conditions on records.
  [
    '{}',
    {
      parameters: ['text', 'json'],
      variadic: true,
      result: 'json',
      bytes: sumWithMarks,
      print: (args) => `jsonb_build_object(${args.join(', ')})`,
    },
  ],
])

const joinedJson =
  '|| of a JSON value with one that may be a text, which PostgreSQL would merge or join by its type; write value::jsonb to merge, or value::text'

const lessJson =
  '- of a JSON value, which PostgreSQL takes to remove a member or an element; write a number, a literal or a text'

function isWrittenJson(expression: Expression): boolean {
  const given =
    expression.kind === 'cast' || expression.kind === 'convert' ? expression.argument : expression
  return given.held === 'document'
}

/** Without the test a value that is no list would count as a list's only element. */
function element(json = '', place = ''): string {
  return `CASE jsonb_typeof(${json}) WHEN 'array' THEN ${member(json, printCount(place))} END`
}

function member(json = '', key = ''): string {
  return `nullif(${json} -> ${key}, 'null'::jsonb)`
}
