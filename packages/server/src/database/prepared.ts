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
  const uses = new Map<string, { name: string; count: number }>()
  let generation = 0

  return {
    nameOf(text) {
      if (text.length > textCharsMax || !plannable.test(text)) return undefined
      const use = uses.get(text) ?? { name: `${hashName(text)}_${generation}`, count: 0 }
      use.count += 1
      uses.delete(text)
      uses.set(text, use)
      if (uses.size > textsMax) {
        for (const oldest of uses.keys()) {
          uses.delete(oldest)
          break
        }
      }
      return use.count > 1 ? use.name : undefined
    },
    forget(text) {
      generation += 1
      uses.delete(text)
    },
  }
}

function hashName(text: string): string {
  return `t${createHash('sha256').update(text).digest('hex').slice(0, 32)}`
}
