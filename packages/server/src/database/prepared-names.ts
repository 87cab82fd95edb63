import { createHash } from 'node:crypto'

/** Matches statements that are worth a plan; utility commands gain nothing. */
const plannable = /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b/i
/** Longer texts are one-offs (long IN lists), and each plan costs the server memory. */
const textCharsMax = 16_384

/** Names for repeated statements, so that each connection parses and plans a hot text once. */
export type PreparedNames = {
  /** Returns the name to prepare the text under; undefined where it is not worth one (yet). */
  readonly findName: (text: string) => string | undefined
  /** Gives the text another name from now on, because its plans became invalid. */
  readonly forget: (text: string) => void
}

type Use = { readonly text: string; readonly name: string; usedAt: number }

/** Uses of other texts after which an unused text may be replaced. */
const keptUses = 4_096

/**
 * Remembers at most `textsMax` texts. The least recently used gives way, but not while it is in use: otherwise a
 * round of more texts than that would find none of them, where now it finds all but the few in excess.
 */
export function makePreparedNames(textsMax: number): PreparedNames {
  // Keyed by length: comparing a text with the few of its length is cheaper than hashing it.
  const uses = new Map<number, readonly Use[]>()
  let count = 0
  let clock = 0
  let generation = 0

  const drop = (text: string) => {
    const same = uses.get(text.length) ?? []
    const left = same.filter((use) => use.text !== text)
    count -= same.length - left.length
    if (left.length > 0) uses.set(text.length, left)
    else uses.delete(text.length)
  }
  return {
    findName(text) {
      if (text.length > textCharsMax) return undefined
      clock += 1
      const same = uses.get(text.length) ?? []
      const use = same.find((each) => each.text === text)
      if (use !== undefined) {
        use.usedAt = clock
        return use.name
      }
      if (!plannable.test(text)) return undefined
      if (count >= textsMax) {
        const oldest = leastRecent(uses.values())
        if (clock - oldest.usedAt <= keptUses) return undefined
        drop(oldest.text)
      }
      const made = { text, name: `${hashName(text)}_${generation}`, usedAt: clock }
      uses.set(text.length, [...(uses.get(text.length) ?? []), made])
      count += 1
      return undefined
    },
    forget(text) {
      generation += 1
      drop(text)
    },
  }
}

function leastRecent(all: Iterable<readonly Use[]>): Pick<Use, 'text' | 'usedAt'> {
  let oldest = { text: '', usedAt: Number.POSITIVE_INFINITY }
  for (const same of all) for (const use of same) if (use.usedAt < oldest.usedAt) oldest = use
  return oldest
}

function hashName(text: string): string {
  return `t${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}
