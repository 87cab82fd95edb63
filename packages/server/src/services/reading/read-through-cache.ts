import type { Readable } from '../../model/readable.ts'
import type { ListRow } from '../../query/compile-list.ts'
import type { AuthorizedSource } from './authorize-sources.ts'
import { isSame, type Positions, type ResultCache } from './result-cache.ts'

/** The reply's text, and the position that it was read at. */
export type FreeAnswer = { readonly text: string | Buffer } & Pick<ListRow, 'height' | 'sequence'>

/**
 * Returns the cached answer where the database could give no other; `makeKey` returns undefined where it always could.
 * It is called after rights and prices of this very request were checked, and only for free answers. An answer is
 * cached where the tables of all its chains stood still while it was read.
 */
export async function readThroughCache(
  answers: ResultCache,
  {
    makeKey,
    sources,
  }: {
    readonly makeKey: () => string | undefined
    readonly sources: readonly AuthorizedSource[]
  },
  make: () => Promise<FreeAnswer>,
): Promise<string | Buffer> {
  const key = answers.isOff ? undefined : makeKey()
  const before = key === undefined ? undefined : findPositions(sources)
  const [home] = before ?? []
  if (key === undefined || before === undefined || home === undefined) return (await make()).text
  const known = answers.find(key, before)
  if (known !== undefined) return known
  const { text, height, sequence } = await make()
  const after = findPositions(sources)
  // A view that is behind its chain can advance while the chain stands still.
  const isCurrent = height === BigInt(home.height) && sequence === home.sequence
  if (after !== undefined && isSame(before, after) && isCurrent) answers.put(key, after, text)
  return text
}

/**
 * Lists the position of each chain that is read, each once, beginning with that of the first source. Undefined if a
 * position is uncertain, or if the chains alone do not decide the answer: an answer states the positions of the views
 * of the first source's application, and of no other views. A view of another application's records is made anew where
 * that one erases some, and its own chain stands still meanwhile.
 */
function findPositions(sources: readonly AuthorizedSource[]): Positions | undefined {
  // Sources behind a view are not read with it.
  const read = sources.filter(({ grantee }) => grantee === undefined)
  const home = read[0]?.tenant
  if (read.some(({ tenant, readable }) => isOthersView(readable, tenant !== home))) return undefined
  const chains = new Set(read.map(({ tenant }) => tenant.chain))
  const positions = [...chains].flatMap((chain) => chain.stillPosition() ?? [])
  return positions.length === chains.size ? positions : undefined
}

function isOthersView(readable: Readable, isForeign: boolean): boolean {
  if (readable.kind !== 'view') return false
  const { app, reads } = readable.view
  return isForeign || reads.some((source) => source.app !== app)
}
