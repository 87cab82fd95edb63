import fc from 'fast-check'
import { expect, test } from 'vitest'
import { digestMeaning, issueQuote, quoteTermsCharsMax, readQuote } from './quote.ts'

const secret = Buffer.alloc(32, 1)
const scope = {
  requestHash: 'request',
  network: 'eip155:84532',
  asset: `0x${'aa'.repeat(20)}`,
  payTo: `0x${'bb'.repeat(20)}`,
}
const meaning = digestMeaning(secret, 'what is named')
const quote = { cap: 1070n, expiresAt: 1_800_000_000, meaning, terms: '-2s_25' }
const id = issueQuote(secret, { ...quote, ...scope })

test('a quote says what was promised and fits into URLs', () => {
  const quotes = fc.record({
    cap: fc.bigInt({ min: 0n, max: 10n ** 15n }),
    expiresAt: fc.integer({ min: 0, max: 2 ** 40 }),
    meaning: fc.string().map((text) => digestMeaning(secret, text)),
    terms: fc.stringMatching(/^[0-9a-z_-]{0,60}$/),
  })
  fc.assert(
    fc.property(quotes, fc.string(), (made, requestHash) => {
      const issued = issueQuote(secret, { ...made, ...scope, requestHash })
      expect(issued).toMatch(/^[A-Za-z0-9_.-]{1,140}$/)
      expect(readQuote(secret, issued, { ...scope, requestHash })).toEqual(made)
    }),
  )
})

test.each([
  ['another request', { ...scope, requestHash: 'other' }],
  ['another network', { ...scope, network: 'eip155:8453' }],
  ['another asset', { ...scope, asset: scope.payTo }],
  ['another payee', { ...scope, payTo: scope.asset }],
])('a quote is worth nothing for %s', (_, other) => {
  expect(readQuote(secret, id, scope)).toEqual(quote)
  expect(readQuote(secret, id, other)).toBeUndefined()
})

test('a quote of another secret, or with any character changed, is no quote', () => {
  expect(readQuote(Buffer.alloc(32, 2), id, scope)).toBeUndefined()
  for (let at = 0; at < id.length; at++) {
    for (const character of '0aA-_. ') {
      const changed = id.slice(0, at) + character + id.slice(at + 1)
      if (changed !== id) expect(readQuote(secret, changed, scope)).toBeUndefined()
    }
  }
  for (const text of ['', 'q2', `${id}=`, ` ${id}`, id.slice(0, -1), 'q2.....', '__proto__']) {
    expect(readQuote(secret, text, scope)).toBeUndefined()
  }
})

test('the prices of a quote are bounded, as headers are', () => {
  const issue = (terms: string) => issueQuote(secret, { ...quote, ...scope, terms })
  const longest = issue('z'.repeat(quoteTermsCharsMax))
  expect(readQuote(secret, longest, scope)?.terms).toHaveLength(quoteTermsCharsMax)
  expect(() => issue('z'.repeat(quoteTermsCharsMax + 1))).toThrow()
})

test('the content that a quote names has one digest, which only this service can make', () => {
  expect(digestMeaning(secret, 'what is named')).toBe(meaning)
  expect(digestMeaning(secret, 'what is namee')).not.toBe(meaning)
  expect(digestMeaning(Buffer.alloc(32, 2), 'what is named')).not.toBe(meaning)
})
