import { JsonScanner } from '@tollbase/verify/json-scanner'

/** Characters of a broken text that are scanned: other requests wait meanwhile. */
const charsMax = 64 * 1024

/**
 * Finds the place where a text that JSON.parse refuses stops being JSON, in lines and columns as editors count: the
 * first impossible token, or the end. Undefined where that is beyond `charsMax`. (The message of JSON.parse names a
 * place only sometimes.)
 */
export function findBreak(
  text: string,
): { readonly line: number; readonly column: number } | undefined {
  const scanner = new JsonScanner(text)
  while (scanner.end <= charsMax) {
    const token = scanner.next()
    const isSpelled = token === 'key' || token === 'string' || token === 'scalar'
    const isShort = scanner.end <= charsMax
    const isBreak = token === 'end' || token === 'broken'
    if (isBreak || (isSpelled && isShort && !scanner.isWellSpelled()))
      return toPlace(text, scanner.start)
  }
  return undefined
}

function toPlace(text: string, at: number): { line: number; column: number } {
  const lines = text.slice(0, at).split('\n')
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
}
