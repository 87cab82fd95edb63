/** Bounds that only the run of a statement can tell are passed, with the words for the caller, which say what to do. */
const problems = {
  series: 'generate_series makes more than 100,000 rows; narrow its bounds, or give a larger step',
  steps:
    'WITH RECURSIVE takes more than 1,000 steps; end it by a condition in its recursive part (WHERE depth < 10), or write UNION in place of UNION ALL if the records lead in a circle',
  rows: 'WITH RECURSIVE finds more than 100,000 rows, or more than 64 MiB; narrow it by a condition in its recursive part',
  size: 'WITH RECURSIVE makes a row of more than 1 MiB; cut its texts, such as by left(text, 1000)',
} as const

export type RunBound = keyof typeof problems

const mark = 'tollbase_bound_'

/**
 * Prints a value that ends the statement where the test holds, for no answer may be cut. PostgreSQL has no function
 * that only fails, so a text that is no value of the type is cast to it. The text is made of the test, as a text that
 * does not vary would be cast before the statement runs.
 */
export function printBounded(
  value: string,
  { bound, test, type }: { readonly bound: RunBound; readonly test: string; readonly type: string },
): string {
  return `CASE WHEN ${test} THEN ('${mark}${bound}:' || (${test})::text)::${type} ELSE ${value} END`
}

/** Returns the problem that a database's error tells of, if a bound was passed. */
export function findPassedBound(error: unknown): string | undefined {
  const message = error instanceof Error ? error.message : ''
  const [, name] = /"tollbase_bound_([a-z]+):/.exec(message) ?? []
  return Object.entries(problems).find(([bound]) => bound === name)?.[1]
}
