import type { FieldPath } from '../condition.ts'
import { printTextExpression, printValueExpression } from '../index-key.ts'
import type { ValueType } from '../tree/query.ts'
import {
  printDateToText,
  printTextToTime,
  printTimeAsPostgres,
  printTimeToText,
} from './print-time.ts'

/** Texts that count as numbers, and the most characters of one. */
const numberPattern = '^\\s*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]{1,2})?\\s*$'
const numberCharsMax = 300

/** Prints a JSON value as one of the type, NULL if it is of another. */
export function printConversion(json: string, type: ValueType): string {
  switch (type) {
    case 'number':
      return `CASE jsonb_typeof(${json}) WHEN 'number' THEN ${json}::numeric END`
    case 'text':
      return `CASE jsonb_typeof(${json}) WHEN 'string' THEN ${json} #>> '{}' END`
    case 'boolean':
      return `CASE jsonb_typeof(${json}) WHEN 'boolean' THEN ${json}::boolean END`
    default:
      return printCast(json, { from: 'json', to: type })
  }
}

/** Prints the value of a record's field if it is of the type, else NULL, as JSON null is. */
export function printFieldConversion(path: FieldPath, record: string, type: ValueType): string {
  const value = `(${printValueExpression(path, record)})`
  if (type !== 'text') return printConversion(value, type)
  return `CASE jsonb_typeof${value} WHEN 'string' THEN ${printTextExpression(path, record)} END`
}

type CastTypes = {
  readonly from: ValueType
  readonly to: ValueType
  /** The meaning of a time that is cast. */
  readonly zone?: 'moment' | 'local' | undefined
}

/** Prints a value cast to another type as far as possible, else NULL; never an error. */
export function printCast(value: string, types: CastTypes): string {
  const { from, to } = types
  if (from === to) return normalText(value, to)
  switch (to) {
    case 'text':
      if (from === 'timestamp') return printTimeAsPostgres(value, types.zone)
      return toText(value, from)
    case 'json':
      return `to_jsonb(${from === 'number' || from === 'boolean' || from === 'text' ? value : toText(value, from)})`
    case 'number':
      return toNumber(value, from)
    case 'boolean':
      return toBoolean(value, from)
    case 'timestamp':
      return from === 'date' ? `${value}::timestamp` : printTextToTime(textIn(value, from))
    case 'date':
      return from === 'timestamp'
        ? `${value}::date`
        : `(${printTextToTime(textIn(value, from))})::date`
    default:
      return value
  }
}

/** Gives equal values that differ in their digits (1.0 and 1) the same form. */
function normalText(value: string, type: ValueType): string {
  if (type === 'number') return `trim_scale(${value})`
  if (type !== 'json') return value
  const short = `regexp_replace(${value}::text, ${zeros}, '\\1\\2', 'g')::jsonb`
  return `CASE jsonb_typeof(${value}) WHEN 'number' THEN to_jsonb(trim_scale(${value}::numeric))
 WHEN 'object' THEN ${short} WHEN 'array' THEN ${short} ELSE ${value} END`
}

/**
 * A pattern for the text of a list or an object (PostgreSQL writes no exponents): it matches texts, which stay, and
 * zeros that end a number.
 */
const zeros = `'("(?:[^"\\\\]|\\\\.)*")|([.][0-9]*[1-9])0+(?![0-9])|[.]0+(?![0-9])'`

function toText(value: string, from: ValueType): string {
  switch (from) {
    case 'json':
      return `(${value} #>> '{}')`
    case 'timestamp':
      return printTimeToText(value)
    case 'date':
      return printDateToText(value)
    default:
      return `${value}::text`
  }
}

function textIn(value: string, from: ValueType): string {
  return from === 'json' ? `(${value} #>> '{}')` : value
}

function toNumber(value: string, from: ValueType): string {
  if (from === 'boolean') return `${value}::int4::numeric`
  const text = textIn(value, from)
  const read = `CASE WHEN length(${text}) <= ${numberCharsMax} AND ${text} ~ '${numberPattern}' THEN ${text}::numeric END`
  if (from !== 'json') return read
  return `CASE jsonb_typeof(${value}) WHEN 'number' THEN ${value}::numeric WHEN 'string' THEN ${read} WHEN 'boolean' THEN ${value}::boolean::int4::numeric END`
}

function toBoolean(value: string, from: ValueType): string {
  if (from === 'number') return `(${value} <> 0)`
  const text = `lower(${textIn(value, from)})`
  return `CASE WHEN ${text} IN ('true', 't', 'yes', 'on', '1') THEN TRUE WHEN ${text} IN ('false', 'f', 'no', 'off', '0') THEN FALSE END`
}

/** Prints the JSON text of a value for the answer; NULL is `null`. */
export function printJson(value: string, type: ValueType): string {
  switch (type) {
    case 'null':
      return `'null'`
    case 'json':
    case 'boolean':
      return `coalesce(${value}::text, 'null')`
    case 'number':
      return `coalesce(trim_scale(${value})::text, 'null')`
    default:
      return `coalesce(to_json(${toText(value, type)})::text, 'null')`
  }
}
