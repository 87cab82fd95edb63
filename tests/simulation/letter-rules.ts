import type { Asked } from './send-request.ts'

/**
 * Shelves of the shop with prices of their own: letters that buyers write and that a count decides on, parcels that cost
 * what their records say; and samples that are quoted by result, of their collection, by a predefined query of it, or
 * of a view of it.
 */
export type Shelf = 'letters' | 'parcels' | 'samples' | 'surveys' | 'galleries'

/** The cost of writing letters. */
const letter = {
  perAccess: 1_000n,
  perRecord: 2_500n,
  perKb: 30_000n,
  minimum: 5_500n,
  maximum: 9_000n,
} as const
export const samplePrice = 1_700n
export const firstSamples = [{ id: 'q0', sample: 'q0' }]

/** Makes the rules for writing letters, as the shop sets them with each list of prices. */
export function makeLetterRules() {
  const rule = (
    model: 'per_access' | 'per_record' | 'per_kb' | 'minimum' | 'maximum',
    amount: bigint,
  ) =>
    ({
      ...{ target: { collection: 'letters' }, operation: 'write' as const, model },
      amount: String(amount),
    }) as const
  return [
    rule('per_access', letter.perAccess),
    rule('per_record', letter.perRecord),
    rule('per_kb', letter.perKb),
    rule('minimum', letter.minimum),
    rule('maximum', letter.maximum),
  ]
}

/** Makes the access policy of samples: the answer decides the quote. */
export function makeSamplePolicy() {
  const price = { per_row: String(samplePrice) }
  return { read: 'public', price, quote: 'by_result' } as const
}

/** Computes what it costs to write so many letters by this request. */
export function computeLetterCost({ body }: Asked, count: number): bigint {
  const exact = letter.perKb * BigInt(Buffer.byteLength(JSON.stringify(body)))
  const kb = exact / 1024n + (exact % 1024n === 0n ? 0n : 1n)
  const sum = letter.perAccess + letter.perRecord * BigInt(count) + kb
  if (sum < letter.minimum) return letter.minimum
  return sum > letter.maximum ? letter.maximum : sum
}

/** Computes the quotes for so many samples, where the collection has at least and at most so many. */
export function listSampleQuotes(rows: number, least: number, most: number): bigint[] {
  const quotes: bigint[] = []
  for (let count = Math.min(rows, least); count <= Math.min(rows, most); count++)
    quotes.push(samplePrice * BigInt(count))
  return quotes
}
