import { createHash } from 'node:crypto'

/** Statements that are worth a plan of their own; utility commands gain nothing. */
const plannable = /^\s*(SELECT|INSERT|UPDATE|DELETE|WITH)\b/i
/** Longer texts are one-offs (long IN lists), and each plan costs the server memory. */
const textCharsMax = 16_384

/** Names for repeated statements, so that each connection parses and plans a hot text once. */
export type PreparedNames = {
  /** The name to prepare the text under, or undefined where it is not worth one (yet). */
  readonly nameOf: (text: string) => string | undefined
  /** Gives the text another name from now on: its plans became invalid. */
  readonly forget: (text: string) => void
}

/** Remembers at most `textsMax` texts, the least recently used go first. */
export function preparedNames(textsMax: number): PreparedNames {
  const uses = new Map<string, { readonly name: string; usedAt: number }>()
  let clock = 0
  let generation = 0

  return {
    nameOf(text) {
      if (text.length > textCharsMax) return undefined
      clock += 1
      const use = uses.get(text)
      if (use !== undefined) {
        use.usedAt = clock
        return use.name
      }
      if (!plannable.test(text)) return undefined
      if (uses.size >= textsMax) uses.delete(leastRecent(uses))
      uses.set(text, { name: `${hashName(text)}_${generation}`, usedAt: clock })
      return undefined
    },
    forget(text) {
      generation += 1
      uses.delete(text)
    },
  }
}

function leastRecent(uses: ReadonlyMap<string, { readonly usedAt: number }>): string {
  let oldest = { text: '', usedAt: Number.POSITIVE_INFINITY }
  for (const [text, { usedAt }] of uses) if (usedAt < oldest.usedAt) oldest = { text, usedAt }
  return oldest.text
}

function hashName(text: string): string {
  return `t${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}
