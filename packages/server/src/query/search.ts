import { limits } from '@tollbase/contract/limits'
import { invalid } from '../base/fault.ts'
import type { FieldPath, FieldTest } from './condition.ts'
import { wordsExpression, wordsOnly } from './index-key.ts'
import { textOperand } from './operand.ts'
import type { Parameters } from './sql-text.ts'

type Search = Extract<FieldTest, { readonly kind: 'search' }>

/** True where the string has all words of the text; of a text without a word, nowhere. */
export function searchTest(
  { path, text }: Search & { readonly path: FieldPath },
  { record, parameters }: { readonly record: string; readonly parameters: Parameters },
): string {
  const wanted = `plainto_tsquery(${wordsOnly}, ${parameters.add(text, 'text')})`
  return `(${wordsExpression(path, record)}) @@ ${wanted}`
}

export function searchOperand(operand: unknown, pointer: string): Search {
  const text = textOperand(operand, pointer)
  if (text.length > limits.searchCharsMax)
    throw invalid(pointer, `has more than ${limits.searchCharsMax} characters`)
  return { kind: 'search', text }
}
