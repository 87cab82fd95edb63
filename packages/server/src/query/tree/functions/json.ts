import { type FunctionDefinition, printPlain, sumBytes } from './function-definition.ts'

const typeOf: FunctionDefinition = {
  parameters: ['read json'],
  result: 'text',
  bytes: () => 8,
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
  check: (args) =>
    args.length % 2 === 0 ? undefined : 'an object of names and values with a name that has none',
  bytes: (parts) => sumBytes(parts) + 8 * parts.length,
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
  bytes: (parts) => sumBytes(parts) + 8 * parts.length,
  print: printPlain('jsonb_build_array'),
}

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
  includes: {
    parameters: ['json', 'json'],
    result: 'boolean',
    print: ([list, item]) =>
      `CASE jsonb_typeof(${list}) WHEN 'array' THEN jsonb_typeof(${item}) IN ('string', 'number', 'boolean') AND ${list} @> ${item} END`,
  },
}
