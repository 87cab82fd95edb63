import { asJson, asText, type Bytes, countTextBytes, type Measure, makeBytes } from './bytes.ts'
import { functions } from './functions/all-functions.ts'
import type { FunctionDefinition } from './functions/function-definition.ts'
import { listSteps } from './functions/json-operators.ts'
import { countDocumentBytes } from './json-document.ts'
import type { Expression } from './query.ts'
import { makeJsonSize, makePlainSize, makeTextSize, mergeSizes, type Size } from './size.ts'
import { operators } from './sql-operators.ts'

export type Call = Extract<Expression, { kind: 'call' }>
export type Gathering = Extract<Expression, { kind: 'aggregate' | 'window' }>

export const none = makePlainSize(0)

/**
 * Lists the names of the members that an operator's steps lead to. Several numbers name one element of a list (0, 00,
 * -1), so the names end before a number.
 */
export function listNames(operator: string, steps: string | boolean | null): readonly string[] {
  if (operator === '->' || operator === '->>') return [String(steps)]
  const path = operator === '#>' || operator === '#>>' ? listSteps(steps) : []
  const end = path.findIndex((step) => /^\s*[+-]?\d+$/.test(step))
  return end === -1 ? path : path.slice(0, end)
}

/** Makes the size of a value that a record, or JSON, of that size holds. */
export function makeSize(type: Expression['type'], json: Bytes): Size {
  return type === 'text' ? makeTextSize(json, json) : makeJsonSize(json)
}

export function computeConstantSize({
  type,
  value,
}: Extract<Expression, { kind: 'constant' }>): Size {
  const text = String(value)
  if (type === 'json') return makeJsonSize(makeBytes(countDocumentBytes(text)))
  const [plain, escaped] = [asText, asJson].map((measure) => countTextBytes(text, measure))
  return makeTextSize(makeBytes(plain ?? 0), makeBytes(escaped ?? 0))
}

export function computeParameterSize(charsMax: number): Size {
  return makeTextSize(
    makeBytes(charsMax * asText.bytesPerChar),
    makeBytes(charsMax * asJson.bytesPerChar),
  )
}

/** A JSON string that is converted is no longer in its marks than it was; a list or an object becomes NULL. */
export function computeCastSize(
  { kind, type, argument }: Extract<Expression, { kind: 'cast' | 'convert' }>,
  part: Size,
): Size {
  if (type !== 'text' || argument.type !== 'json') return part
  return makeTextSize(part.text, kind === 'convert' ? part.json : part.escaped)
}

/** Makes the size of a part of a value: a list inside of a JSON value may be taken out as a text. */
export function makePartSize(type: Expression['type'], whole: Size): Size {
  return type === 'text' ? makeTextSize(whole.text, whole.escaped) : whole
}

/** Estimates the largest value that a function can give, by its row in the table. */
export function computeCallSize(call: Call, parts: readonly Size[]): Size {
  const definition = functions.get(call.name) ?? operators.get(call.name)
  return definition?.bytes === undefined
    ? makePartSize(call.type, mergeSizes(parts))
    : computeSizeBy(definition.bytes, call, parts)
}

/** Estimates what a function or an aggregate gives, by the count of its row in the table. */
export function computeSizeBy(
  count: NonNullable<FunctionDefinition['bytes']>,
  { type, arguments: args }: Call | Gathering,
  parts: readonly Size[],
): Size {
  const countOf = (way: keyof Size, measure: Measure) =>
    count(
      parts.map((part) => part[way]),
      args,
      measure,
    )
  if (type === 'json') return makeJsonSize(countOf('json', asJson))
  return makeTextSize(countOf('text', asText), countOf('escaped', asJson))
}
