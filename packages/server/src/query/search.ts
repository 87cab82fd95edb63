import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../base/fault.ts'
import type { FieldPath, FieldTest } from './condition.ts'
import { printWordsExpression, wordsOnly } from './index-key.ts'
import { parseText } from './operand.ts'
import type { Parameters } from './sql-text.ts'

type Search = Extract<FieldTest, { readonly kind: 'search' }>

/** Compiles a test that is true if the string has all words of the text; a text without a word matches nothing. */
export function compileSearch(
  { path, text }: Search & { readonly path: FieldPath },
  { record, parameters }: { readonly record: string; readonly parameters: Parameters },
): string {
  const wanted = `plainto_tsquery(${wordsOnly}, ${parameters.add(text, 'text')})`
  return `(${printWordsExpression(path, record)}) @@ ${wanted}`
}

export function parseSearch(operand: unknown, pointer: string): Search {
  const text = parseText(operand, pointer)
  if (text.length > limits.searchCharsMax)
    throw makeInvalidFault(pointer, `has more than ${limits.searchCharsMax} characters`)
  return { kind: 'search', text }
}
