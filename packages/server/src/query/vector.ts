/** The distances of two lists of numbers, by the names of pgvector's functions without their ending. */
export type Measure = 'l2' | 'cosine' | 'inner_product'

/** Numbers whose products neither overflow nor vanish: those between 10^-digits and 10^digits, and 0. */
export const vectorDigitsMax = 99

/**
 * Prints the double precision numbers of a JSON list (SQL of jsonb); NULL if it has anything else, or a number of
 * more digits on either side of the point. PostgreSQL writes jsonb without exponents. Both calls of `replace` together
 * take a tenth of the time of one `translate`.
 */
export function printNumbers(list: string): string {
  return `(SELECT CASE WHEN item.text ~ '^\\[[-0-9., ]+\\]$' AND item.text !~ '[0-9]{${vectorDigitsMax + 1}}'
  THEN replace(replace(item.text, '[', '{'), ']', '}')::float8[] END FROM (SELECT (${list})::text AS text OFFSET 0) AS item)`
}

const product = 'sum(pair.a * pair.b)'
const results: Readonly<Record<Measure, string>> = {
  l2: 'sqrt(sum((pair.a - pair.b) * (pair.a - pair.b)))::numeric',
  // Rounded, so that lists of one direction are 0 apart.
  cosine: `trim_scale(round((1 - ${product} / nullif(sqrt(sum(pair.a * pair.a)) * sqrt(sum(pair.b * pair.b)), 0))::numeric, 15))`,
  inner_product: `${product}::numeric`,
}

/**
 * Prints the distance of two lists of double precision numbers; NULL unless they have one length. It is found in
 * double precision and given with 15 digits.
 */
export function printDistance(measure: Measure, a: string, b: string): string {
  return `(SELECT CASE WHEN cardinality(list.a) = cardinality(list.b) THEN
  (SELECT ${results[measure]} FROM (SELECT unnest(list.a) AS a, unnest(list.b) AS b) AS pair) END
 FROM (SELECT ${a} AS a, ${b} AS b OFFSET 0) AS list)`
}
