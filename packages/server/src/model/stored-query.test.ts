import { expect, test } from 'vitest'
import { countQueryChars, type StoredQuery, toKeptQuery } from './stored-query.ts'

const stored: StoredQuery = {
  name: 'q',
  version: 1,
  parameters: [],
  sources: ['c'],
  created_at: '2026-01-31T12:00:00.000Z',
  example_request: { country: 'Ö' },
  example_response: Array.from({ length: 43_000 }, () => ({})),
}

test('the catalog keeps the examples of a query as texts, which take a twentieth of the memory of their values', () => {
  const { exampleTexts, ...rest } = toKeptQuery(stored)
  expect(exampleTexts).toEqual({
    request: JSON.stringify(stored.example_request),
    response: JSON.stringify(stored.example_response),
  })
  expect(Object.keys(rest)).not.toContain('example_response')
  expect(toKeptQuery({ ...stored, example_request: null }).exampleTexts?.request).toBe('null')
})

test('the characters of a version are those that were sent, whatever the catalog makes of it', () => {
  expect(countQueryChars(toKeptQuery(stored))).toBe(JSON.stringify(stored).length)
})
