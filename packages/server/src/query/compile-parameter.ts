import { makeGiven, printKeyTest } from './compile/compare.ts'
import type { ParameterRef, ParameterTest } from './condition.ts'
import { keyOrder } from './index-key.ts'
import {
  canBeCut,
  makeJsonValue,
  makeKeyValue,
  makePlainValue,
  makePrefixEnd,
} from './parameter.ts'
import type { Parameters } from './sql-text.ts'

type Field = {
  readonly key: string
  readonly value: string
  readonly text: string
  readonly parameters: Parameters
}

/**
 * Compiles a comparison of a field with a value that is given later: the tests and keys are those of a request's
 * `find`, so that the same indexes serve them.
 */
export function compileParameter(
  condition: {
    readonly test: ParameterTest
    readonly ignoreCase: boolean
    readonly parameter: ParameterRef
  },
  field: Field,
): string {
  const { test, ignoreCase, parameter } = condition
  const { add } = field.parameters
  const text = () => {
    const wanted = add(makePlainValue(parameter.name), 'text')
    return ignoreCase ? `lower(${wanted})` : wanted
  }
  const own = ignoreCase ? `lower(${field.text})` : field.text
  switch (test) {
    case 'in': {
      const keys = `${field.key} = ANY (${add(makeKeyValue(parameter), 'jsonb[]')})`
      if (!canBeCut(parameter)) return keys
      return `(${keys} AND ${field.value} = ANY (${add(makeJsonValue(parameter), 'jsonb[]')}))`
    }
    case 'starts':
      if (ignoreCase) return printStringTest(field, `starts_with(${own}, ${text()})`)
      return `(${field.key} >= ${add(makeJsonValue(parameter), 'jsonb')} AND ${field.key} < coalesce(${add(makePrefixEnd(parameter), 'jsonb')}, ${keyOrder.numberLeast}))`
    case 'ends': {
      const wanted = text()
      return printStringTest(field, `right(${own}, length(${wanted})) = ${wanted}`)
    }
    case 'includes':
      return includes(parameter, ignoreCase, field)
    default:
      return printKeyTest(test, field, { given: makeGiven(parameter), values: field.parameters })
  }
}

function includes(parameter: ParameterRef, ignoreCase: boolean, field: Field): string {
  const { add } = field.parameters
  const wanted = () => add(makePlainValue(parameter.name), 'text')
  if (ignoreCase)
    return `CASE jsonb_typeof${field.value}
 WHEN 'string' THEN strpos(lower(${field.text}), lower(${wanted()})) > 0
 WHEN 'array' THEN EXISTS (SELECT 1 FROM jsonb_array_elements(${field.value}) AS element(value)
  WHERE jsonb_typeof(element.value) = 'string' AND lower(element.value #>> '{}') = lower(${wanted()}))
 ELSE FALSE END`
  const isInside =
    parameter.type === 'text' ? `WHEN 'string' THEN strpos(${field.text}, ${wanted()}) > 0 ` : ''
  return `CASE jsonb_typeof${field.value} ${isInside}WHEN 'array' THEN ${field.value} @> ${add(makeJsonValue(parameter), 'jsonb')} ELSE FALSE END`
}

/** Prints a test of a field that is false where the field has no string. */
export function printStringTest(field: Field, test: string): string {
  return `CASE WHEN jsonb_typeof${field.value} = 'string' THEN ${test} ELSE FALSE END`
}
