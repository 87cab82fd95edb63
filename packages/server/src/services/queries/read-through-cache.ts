import type { FreeAnswer } from '../reading/answer-query.ts'
import type { JudgedSource } from '../reading/authorize-sources.ts'
import { isSame, type KeptAnswers, type Positions } from './result-cache.ts'

/**
 * The answer from memory where the database could give no other; `key` undefined where it always could. It is asked
 * after rights and prices of this very request were judged, and only for what costs nothing. An answer is kept where
 * the tables of all its chains stood still while it was read.
 */
export async function recallAnswer(
  answers: KeptAnswers,
  { key, sources }: { readonly key: string | undefined; readonly sources: readonly JudgedSource[] },
  make: () => Promise<FreeAnswer>,
): Promise<string | Buffer> {
  const before = key === undefined || answers.isOff ? undefined : positionsOf(sources)
  const [home] = before ?? []
  if (key === undefined || before === undefined || home === undefined) return (await make()).text
  const known = answers.find(key, before)
  if (known !== undefined) return known
  const { text, height, sequence } = await make()
  const after = positionsOf(sources)
  // A view that is behind its chain is brought on without the chain's doing.
  const isCurrent = height === BigInt(home.height) && sequence === home.sequence
  if (after !== undefined && isSame(before, after) && isCurrent) answers.keep(key, after, text)
  return text
}

/**
 * Of each chain that is read once, the first source's first; undefined where one is not certain, or where not the
 * chains alone decide: an answer states how far the views of the first source's application are, and no others.
 */
function positionsOf(sources: readonly JudgedSource[]): Positions | undefined {
  // What is behind a view is not read with it.
  const read = sources.filter(({ grantee }) => grantee === undefined)
  const home = read[0]?.tenant
  if (read.some(({ tenant, collection: { view } }) => view !== undefined && tenant !== home))
    return undefined
  const chains = new Set(read.map(({ tenant }) => tenant.chain))
  const positions = [...chains].flatMap((chain) => chain.settled() ?? [])
  return positions.length === chains.size ? positions : undefined
}
