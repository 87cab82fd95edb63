import { countBytes, expandBytes, makeBytes, sumBytes } from '../bytes.ts'
import { type FunctionDefinition, printPlain } from './function-definition.ts'
import { hasItemsOf, printPathTest, sumWithMarks } from './json-operators.ts'

const typeOf: FunctionDefinition = {
  parameters: ['read json'],
  result: 'text',
  bytes: () => makeBytes(8),
  print: printPlain('jsonb_typeof'),
}
const arrayLength: FunctionDefinition = {
  parameters: ['read json'],
  result: 'number',
  whole: true,
  print: ([json]) =>
    `CASE jsonb_typeof(${json}) WHEN 'array' THEN jsonb_array_length(${json})::numeric END`,
}
/** NULL if a name is NULL, which no member can have. */
const built: FunctionDefinition = {
  parameters: ['printable', 'json'],
  optional: 2,
  variadic: true,
  result: 'json',
  held: 'document',
  check: (args) =>
    args.length % 2 === 0 ? undefined : 'an object of names and values with a name that has none',
  bytes: sumWithMarks,
  print: (args, expressions) => {
    const object = `jsonb_build_object(${args.join(', ')})`
    const open = args.filter((_, at) => at % 2 === 0 && expressions[at]?.kind !== 'constant')
    return open.length === 0
      ? object
      : `CASE WHEN num_nulls(${open.join(', ')}) = 0 THEN ${object} END`
  },
}
const listed: FunctionDefinition = {
  parameters: ['json'],
  optional: 1,
  variadic: true,
  result: 'json',
  held: 'document',
  bytes: sumWithMarks,
  print: printPlain('jsonb_build_array'),
}

const printedItem = `CASE jsonb_typeof(item.value) WHEN 'boolean' THEN left(item.value::text, 1) ELSE item.value #>> '{}' END`

/** Functions of JSON values, by their lower-case names. */
export const jsonFunctions: Readonly<Record<string, FunctionDefinition>> = {
  jsonb_typeof: typeOf,
  json_typeof: typeOf,
  jsonb_array_length: arrayLength,
  json_array_length: arrayLength,
  jsonb_build_object: built,
  json_build_object: built,
  jsonb_build_array: listed,
  json_build_array: listed,
  to_jsonb: {
    parameters: ['json'],
    result: 'json',
    held: 'document',
    print: ([json = '']) => json,
  },
  // NULL where a step into a list is no number, and of a value that is no list and no object.
  jsonb_set: {
    parameters: ['document', 'path', 'document', 'boolean'],
    optional: 1,
    result: 'json',
    held: 'document',
    bytes: sumWithMarks,
    print: ([json = '', path = '', value = '', isAdded = 'true'], [, given]) => {
      const test = printPathTest(json, path, given?.kind === 'constant' && given.value)
      return `CASE WHEN (${json} = '[]' AND NOT ${isAdded}) OR (${test}) THEN jsonb_set(${json}, ${path}::text[], ${value}, ${isAdded}) END`
    },
  },
  jsonb_strip_nulls: {
    parameters: ['document'],
    result: 'json',
    held: 'document',
    print: printPlain('jsonb_strip_nulls'),
  },
  cardinality: arrayLength,
  // A truth value is t or f, as in PostgreSQL. Each element takes two bytes or more of a list that is not written out.
  array_to_string: {
    parameters: ['json', 'text', 'text'],
    optional: 1,
    result: 'text',
    check: ([array]) =>
      hasItemsOf(array, ['text', 'number', 'boolean', 'json'])
        ? undefined
        : "array_to_string of something that is no array of texts, numbers or truth values; write string_agg(a::text, ',') over its elements",
    bytes: ([array = makeBytes(0), ...between], [given]) => {
      const isWritten = given?.kind === 'call' && given.name === 'ARRAY'
      const count = isWritten ? given.arguments.length : countBytes(array) / 2
      return sumBytes([array, expandBytes(sumBytes(between), count)])
    },
    isSubQuery: true,
    print: ([array, delimiter, instead = 'NULL']) =>
      `CASE WHEN num_nulls(${array}, ${delimiter}) = 0 THEN coalesce((SELECT string_agg(coalesce(${printedItem}, ${instead}), ${delimiter} ORDER BY item.place)
 FROM jsonb_array_elements(${array}) WITH ORDINALITY AS item(value, place)), '') END`,
  },
  includes: {
    parameters: ['json', 'json'],
    result: 'boolean',
    print: ([list, item]) =>
      `CASE jsonb_typeof(${list}) WHEN 'array' THEN jsonb_typeof(${item}) IN ('string', 'number', 'boolean') AND ${list} @> ${item} END`,
  },
}
