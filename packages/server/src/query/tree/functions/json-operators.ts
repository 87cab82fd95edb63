import { type Bytes, makeBytes, sumBytes } from '../bytes.ts'
import type { Expression, ValueType } from '../query.ts'
import { type FunctionDefinition, printCount } from './function-definition.ts'

/** Bytes of the marks that PostgreSQL puts around an element or a member. */
const marksBytes = 8

/** Returns the most bytes of a list or an object of the parts; names count as JSON strings. */
export function sumWithMarks(parts: readonly Bytes[]): Bytes {
  return sumBytes([...parts, makeBytes(marksBytes * Math.max(1, parts.length))])
}

/** Prints a value if it is a list or one of `types`, else NULL. It is named once, so that chains stay short. */
function printOf(json: string, types: readonly string[]): string {
  const tests = types.map((type) => `@.type() == "${type}"`).join(' || ')
  return `jsonb_path_query_first(${json}, 'strict $ ? (${tests})')`
}

const contains = (sign: string): FunctionDefinition => ({
  parameters: ['document', 'document'],
  result: 'boolean',
  print: ([left, right]) => `(${left} ${sign} ${right})`,
})

/** An array has no NULL among its elements in this sense, so one that asks for NULL is in no array. */
const containsArray = (inner: number): FunctionDefinition => ({
  parameters: ['json', 'json'],
  result: 'boolean',
  print: (args) => {
    const [outer, part] = inner === 1 ? args : args.toReversed()
    return `(${outer} @> ${part} AND NOT ${part} @> '[null]'::jsonb)`
  },
})

const hasKeys = (sign: string): FunctionDefinition => ({
  parameters: ['read json', 'json'],
  result: 'boolean',
  check: ([, names]) =>
    hasItemsOf(names, ['text', 'json'])
      ? undefined
      : `${sign} beside something that is no array of texts; write ARRAY['a', 'b']`,
  isSubQuery: true,
  print: ([json, names]) =>
    `CASE WHEN ${names} IS NOT NULL THEN ${json} ${sign} ARRAY(SELECT jsonb_array_elements_text(${names})) END`,
})

/** Returns true for an array of one of the types; `json` is that of fields that are not declared. */
export function hasItemsOf(array: Expression | undefined, types: readonly ValueType[]): boolean {
  return typeof array?.held === 'object' && types.includes(array.held.items.type)
}

/** Lists the steps of a path that is a constant, as query/sql/read-literal.ts writes it. */
export function listSteps(path: unknown): readonly string[] {
  return [...String(path).matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, step = '']) => step)
}

/**
 * Prints a test that every step that leads into a list is a number, and that there are steps at all. In a list without
 * elements PostgreSQL reads no step where there is nothing to add.
 */
export function printPathTest(json: string, path: string, given: unknown): string {
  const tests = listSteps(given).flatMap((step, at) =>
    /^\s*[+-]?\d{1,9}$/.test(step)
      ? []
      : [`jsonb_typeof(${json} #> (${path}::text[])[1:${at}]) IS DISTINCT FROM 'array'`],
  )
  return [`jsonb_typeof(${json}) IN ('object', 'array')`, ...tests].join(' AND ')
}

/**
 * Operators of JSON values and of arrays, which are lists here, by the names that query/sql/choose-operator.ts finds.
 * No value makes one fail: where PostgreSQL would, the result is NULL.
 */
export const jsonOperators: Readonly<Record<string, FunctionDefinition>> = {
  '@>': contains('@>'),
  '<@': contains('<@'),
  'array @> array': containsArray(1),
  'array <@ array': containsArray(0),
  '?|': hasKeys('?|'),
  '?&': hasKeys('?&'),
  // A cast to jsonb, which changes nothing but what operators take the value for.
  jsonb: { parameters: ['json'], result: 'json', held: 'document', print: ([json = '']) => json },
  'jsonb || jsonb': {
    parameters: ['document', 'document'],
    result: 'json',
    held: 'document',
    bytes: sumWithMarks,
    print: ([left, right]) => `(${left} || ${right})`,
  },
  'jsonb - name': {
    parameters: ['document', 'text'],
    result: 'json',
    held: 'document',
    print: ([json = '', name]) => `(${printOf(json, ['object', 'array'])} - ${name})`,
  },
  'jsonb - place': {
    parameters: ['document', 'number'],
    result: 'json',
    held: 'document',
    print: ([json = '', place]) => `(${printOf(json, ['array'])} - ${printCount(place)})`,
  },
  '#-': {
    parameters: ['document', 'path'],
    result: 'json',
    held: 'document',
    print: ([json = '', path = ''], [, given]) =>
      `CASE WHEN ${json} = '[]' OR (${printPathTest(json, path, given?.kind === 'constant' && given.value)}) THEN ${json} #- ${path}::text[] END`,
  },
  ARRAY: {
    parameters: ['json'],
    optional: 1,
    variadic: true,
    result: 'json',
    bytes: sumWithMarks,
    print: (args) => `jsonb_build_array(${args.join(', ')})`,
  },
  // PostgreSQL takes an array that is NULL for an empty one here.
  'array || array': {
    parameters: ['json', 'json'],
    result: 'json',
    held: 'array',
    bytes: sumWithMarks,
    print: ([left, right]) => `coalesce(${left} || ${right}, ${left}, ${right})`,
  },
  'array || item': {
    parameters: ['json', 'json'],
    result: 'json',
    held: 'array',
    bytes: sumWithMarks,
    print: ([array, item]) => `(coalesce(${array}, '[]'::jsonb) || jsonb_build_array(${item}))`,
  },
  'item || array': {
    parameters: ['json', 'json'],
    result: 'json',
    held: 'array',
    bytes: sumWithMarks,
    print: ([item, array]) => `(jsonb_build_array(${item}) || coalesce(${array}, '[]'::jsonb))`,
  },
}
