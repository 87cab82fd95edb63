import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { sql } from '../database/sql.ts'
import { createTestDatabase, listTestEngines, type TestDatabase } from '../database/testing.ts'
import { translatePattern } from './pattern.ts'

const refused = (pattern: string) => () => translatePattern(pattern, '/find/a/regExpMatches')

describe('patterns of conditions', () => {
  it.each([
    ['(a+)+', 'nested'],
    ['(a*b|c+)*', 'nested'],
    ['((a{2,})b)*', 'nested'],
    ['(a)\\1', 'backreferences'],
    ['(?=a)b', 'not supported'],
    ['(?!a)b', 'not supported'],
    ['(?<name>a)', 'not supported'],
    ['a**', 'follows a quantifier'],
    ['a+*', 'follows a quantifier'],
    ['^*', 'follows ^'],
    ['(a\\b)+', 'group with'],
    ['\\ba'.repeat(9), 'more than 8'],
    ['(^a|b)*', 'group with'],
    ['*a', 'nothing to repeat'],
    ['***=a', 'nothing to repeat'],
    ['(a', 'not closed'],
    ['a)', 'closes nothing'],
    ['[a', 'ends too early'],
    ['[]', 'empty'],
    ['[b-a]', 'reversed'],
    ['[[:alpha:]]', 'not supported'],
    ['a{2,1}', 'must rise'],
    ['a{256}', 'at most 255'],
    ['a{,2}', '{n}'],
    ['((a{200}){200}){200}', 'too large'],
    ['\\', 'ends too early'],
    ['\\p{L}', 'not supported'],
    ['\\u00', 'ends too early'],
    ['\\ud800', 'hexadecimal'],
  ])(
    'a pattern that is hostile or not of the common subset is refused with the reason: %s',
    (pattern, reason) => {
      expect(refused(pattern)).toThrow(reason)
    },
  )

  it('a pattern may have as many characters as the limit says, and not one more', () => {
    expect(refused('a'.repeat(512))).not.toThrow()
    expect(refused('a'.repeat(513))).toThrow('more than 512 characters')
  })
})

const samples = [
  '',
  'a',
  'b',
  'ab',
  'aab',
  'abab',
  'A',
  'é',
  '😀',
  'a1_',
  ' ',
  'a\nb',
  '-',
  ']',
  '^',
  '\\',
  '(a)',
  '{2}',
  'a{2}',
  '.*',
  '\t',
]
const pieces = [
  'a',
  'b',
  'A',
  '1',
  '_',
  'é',
  '😀',
  ' ',
  '.',
  '^',
  '$',
  '|',
  '(',
  '(?:',
  ')',
  '[',
  '[^',
  ']',
  '-',
  '*',
  '+',
  '?',
  '{2}',
  '{1,}',
  '{0,3}',
  '{',
  '}',
  ',',
  '\\d',
  '\\D',
  '\\w',
  '\\W',
  '\\s',
  '\\S',
  '\\.',
  '\\-',
  '\\]',
  '\\\\',
  '\\n',
  '\\t',
  '\\u0041',
  '\\x62',
  '/',
  '#',
  '&',
  '~',
  '"',
  "'",
]
const pattern = fc.array(fc.constantFrom(...pieces), { maxLength: 10 }).map((each) => each.join(''))

describe.each(listTestEngines())('patterns in PostgreSQL (%s)', (engine) => {
  let test: TestDatabase
  beforeAll(async () => {
    test = await createTestDatabase(engine)
  })
  afterAll(async () => test?.drop())

  async function matching(translated: string): Promise<string[]> {
    const rows = await test.database.query<{ sample: string }>(
      sql`SELECT sample FROM unnest(${samples}::text[]) WITH ORDINALITY AS s(sample, place) WHERE sample ~ ${translated}::text ORDER BY place`,
    )
    return rows.map((row) => row.sample)
  }

  it('PostgreSQL reads every accepted pattern without an error, and as JavaScript does', async () => {
    let accepted = 0
    await fc.assert(
      fc.asyncProperty(pattern, async (each) => {
        let translated: string
        try {
          translated = translatePattern(each, '')
        } catch {
          return
        }
        accepted += 1
        const found = await matching(translated)
        const script = asJavaScript(each)
        if (script !== undefined)
          expect(found).toEqual(samples.filter((sample) => script.test(sample)))
      }),
      { numRuns: 3000 },
    )
    expect(accepted).toBeGreaterThan(500)
  })

  it.each([
    'x{255}',
    '([a-z]{1,40}[0-9]{1,9}){1,11}',
    '(?i)([^\\u0000-\\u0001]{10}){10}'.replace('\\u0000-', ''),
    '(?i)[\\u0001-\\uffff]{200}',
    `(${'a|'.repeat(50)}b){5}`,
    '(.{0,99}a){0,5}',
    '(a?b?c?d?){80}',
    `${'(^|a?|$)'.repeat(4)}`,
    `${'\\b(a?|\\B)'.repeat(4)}c{200}`,
    `${'\\b(a|ab|b?).*'.repeat(8)}`,
    '(.{0,21}a){0,21}',
    `${'(a?'.repeat(100)}${')'.repeat(100)}`,
    `${'.*a'.repeat(170)}`,
  ])('PostgreSQL compiles and matches the largest accepted patterns quickly: %s', async (each) => {
    const translated = translatePattern(each, '')
    const began = performance.now()
    await test.database.query(sql`SELECT repeat('ab1x', 2000) ~ ${translated}::text`)
    expect(performance.now() - began).toBeLessThan(20_000)
  })
})

/** The same pattern for JavaScript, if it reads such a one; `s`, as PostgreSQL's dot takes line breaks. */
function asJavaScript(each: string): RegExp | undefined {
  try {
    return new RegExp(each, 'su')
  } catch {
    return undefined
  }
}
