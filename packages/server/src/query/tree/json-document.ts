import { asText, countTextBytes } from './bytes.ts'

/** Returns true of a text that PostgreSQL reads as JSON, and of whose values it can hold each. */
export function isDocument(text: string): boolean {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return false
  }
  const withoutTexts = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '""')
  // PostgreSQL's numbers end where exponents have four digits, and it has no U+0000.
  return holds(value, documentDepthMax) && !/e[+-]?\d{4}/i.test(withoutTexts)
}

const documentDepthMax = 64

function holds(value: unknown, depth: number): boolean {
  if (depth === 0) return false
  if (typeof value === 'number') return Number.isFinite(value)
  if (typeof value === 'string') return !/[\0\p{Surrogate}]/u.test(value)
  if (typeof value !== 'object' || value === null) return true
  return Object.entries(value).every(([name, each]) => holds(name, depth) && holds(each, depth - 1))
}

/**
 * Returns the most bytes that PostgreSQL prints of a JSON value, by the text that states it: a blank stands behind
 * each comma and colon, and a number has no exponent.
 */
export function countDocumentBytes(text: string): number {
  const withoutTexts = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '')
  const blanks = withoutTexts.match(/[,:]/g)?.length ?? 0
  const digits = [...withoutTexts.matchAll(/e[+-]?(\d+)/gi)].map(
    ([, exponent]) => Number(exponent) + 2,
  )
  return digits.reduce((sum, each) => sum + each, countTextBytes(text, asText) + blanks)
}
