import { type FunctionDefinition, printCount, printNonZero } from './functions.ts'

const infix =
  (sign: string): FunctionDefinition['print'] =>
  ([left = '', right = '']) =>
    `(${left} ${sign} ${right})`

const arithmetic = (sign: string): FunctionDefinition => ({
  parameters: ['number', 'number'],
  result: 'number',
  whole: 'same',
  print: infix(sign),
})

/** The operators that SQL may use, comparisons aside, by their sign; those of times by sign and types. */
export const operators: ReadonlyMap<string, FunctionDefinition> = new Map<
  string,
  FunctionDefinition
>([
  ['+', arithmetic('+')],
  ['-', arithmetic('-')],
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
  ['||', { parameters: ['printable', 'printable'], result: 'text', print: infix('||') }],
  [
    '->',
    { parameters: ['json', 'text'], result: 'json', print: ([json, key]) => member(json, key) },
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
    'time + interval',
    { parameters: ['timestamp', 'interval'], result: 'timestamp', print: infix('+') },
  ],
  [
    'time - interval',
    { parameters: ['timestamp', 'interval'], result: 'timestamp', print: infix('-') },
  ],
  [
    'time - time',
    { parameters: ['timestamp', 'timestamp'], result: 'interval', print: infix('-') },
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
  [
    'date + number',
    {
      parameters: ['date', 'number'],
      result: 'date',
      print: ([date, days]) => `(${date} + ${printDays(days)})`,
    },
  ],
  [
    'date - number',
    {
      parameters: ['date', 'number'],
      result: 'date',
      print: ([date, days]) => `(${date} - ${printDays(days)})`,
    },
  ],
  // The cast to char(n), which fills up with blanks; whatever takes it as a text takes these away again.
  [
    'char',
    {
      parameters: ['text', 'number'],
      result: 'text',
      print: ([text, length]) => `rpad(${text}, ${printCount(length)})`,
    },
  ],
  // An object of names and values; made of a sub-query's columns, for conditions on records.
  [
    '{}',
    {
      parameters: ['text', 'json'],
      variadic: true,
      result: 'json',
      print: (args) => `jsonb_build_object(${args.join(', ')})`,
    },
  ],
])

/** Prints a number of days, NULL where a date so far away could be outside of PostgreSQL's calendar. */
function printDays(days = '0'): string {
  return `CASE WHEN abs(${days}) <= 1000000 THEN trunc(${days})::int4 END`
}

/** Without the test a value that is no list would count as a list's only element. */
function element(json = '', place = ''): string {
  return `CASE jsonb_typeof(${json}) WHEN 'array' THEN ${member(json, printCount(place))} END`
}

function member(json = '', key = ''): string {
  return `nullif(${json} -> ${key}, 'null'::jsonb)`
}
