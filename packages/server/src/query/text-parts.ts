/** More words find hardly fewer texts. */
const wordsMax = 3

/** A part of three letters or digits is the shortest that a trigram index finds. */
const findable = /[\p{L}\p{N}]{3}/u

/**
 * Characters at which parts are split: those that JSON text writes in another way, because the field may be a list
 * of texts, and the letter whose lower case depends on what stands beside it.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that JSON escapes
const splitters = /["\\\u0000-\u001fΣσς]+/u

/**
 * Makes the LIKE pattern that every text with these parts, in this order, matches, in the form that a trigram index
 * serves; undefined if the parts are too short for one. The index knows neither that a field is a text nor where
 * a part stands, so the pattern stands beside the exact test, and only leaves out what cannot pass that.
 */
export function makePartsPattern(texts: readonly string[]): string | undefined {
  const parts = texts.flatMap((text) => text.split(splitters)).filter((part) => part !== '')
  if (!parts.some((part) => findable.test(part))) return undefined
  return `%${parts.map((part) => part.replaceAll(/[%_]/g, '\\$&')).join('%')}%`
}

/** Lists the texts that stand between the wildcards of a LIKE pattern. */
export function listLikeParts(pattern: string): readonly string[] {
  const parts: string[] = []
  let part = ''
  for (const [token] of pattern.matchAll(/\\?./gsu)) {
    if (token === '%' || token === '_') {
      parts.push(part)
      part = ''
    } else part += token.length > 1 && token.startsWith('\\') ? token.slice(1) : token
  }
  return [...parts, part]
}

/**
 * Makes patterns that every text with all words of another one matches, whatever the case: of words of letters
 * alone, in which PostgreSQL's parser finds nothing but words, and of their ASCII letters, whose lower case is the
 * same everywhere. Tags and entities, which the parser leaves out, may be of several words.
 */
export function makeWordPatterns(text: string): readonly string[] {
  if (/[<&]/.test(text)) return []
  const words = text.split(/\s+/).filter((word) => /^\p{L}+$/u.test(word))
  const parts = words.flatMap((word) => word.match(/[A-Za-z]{3,}/g) ?? [])
  const longest = [...new Set(parts)].sort((a, b) => b.length - a.length).slice(0, wordsMax)
  return longest.map((part) => `%${part}%`)
}

/** Prints the test of a pattern; `text` is the field by `printTextExpression`. */
export function printPartsTest(text: string, pattern: string, ignoreCase: boolean): string {
  return `${text} ${ignoreCase ? 'ILIKE' : 'LIKE'} ${pattern}`
}
