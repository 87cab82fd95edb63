import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { refuseLongDefinition } from './definition-size.ts'

const many = (count: number) => Array.from({ length: count }, () => 'a')

test('viewValuesMax: a definition has the most values that the limit allows, and one more is refused', () => {
  // The object, and the list itself.
  const make = (values: number) => ({ $literal: many(values - 2) })
  expect(() => refuseLongDefinition(make(limits.viewValuesMax), '/query')).not.toThrow()
  expect(() => refuseLongDefinition(make(limits.viewValuesMax + 1), '/query')).toThrow(
    `/query is made of more than ${limits.viewValuesMax} values`,
  )
})

test('viewWordsMax: a definition has the most names and operators that the limit allows, and one more is refused', () => {
  // The object is one.
  const make = (words: number) => ({ select: many(words - 1) })
  expect(() => refuseLongDefinition(make(limits.viewWordsMax), '/query')).not.toThrow()
  expect(() => refuseLongDefinition(make(limits.viewWordsMax + 1), '/query')).toThrow(
    `/query has more than ${limits.viewWordsMax} fields, names and operators`,
  )
})
