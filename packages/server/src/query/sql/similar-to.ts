/**
 * Writes a pattern of SIMILAR TO as a regular expression that matches the same whole texts; undefined where its escape
 * character ends it or marks a part (`\"`). As in PostgreSQL, `%` and `_` stand for any characters and for any one, the
 * escape character makes the next one plain (or a class such as `\d`), and `.`, `^` and `$` mean themselves.
 */
export function writeSimilar(pattern: string, sign: string): string | undefined {
  const characters = [...pattern]
  let written = ''
  let isInClass = false
  for (let at = 0; at < characters.length; at += 1) {
    const character = characters[at] ?? ''
    if (character === sign) {
      at += 1
      const escaped = characters[at]
      if (escaped === undefined || escaped === '"') return undefined
      written += `\\${escaped}`
    } else if (isInClass) {
      isInClass = character !== ']'
      written += character === '\\' ? '\\\\' : character
    } else {
      isInClass = character === '['
      written += replacements[character] ?? character
    }
  }
  return `^(?:${written})$`
}

const replacements: Readonly<Record<string, string>> = {
  '%': '.*',
  _: '.',
  '(': '(?:',
  '\\': '\\\\',
  '.': '\\.',
  '^': '\\^',
  $: '\\$',
}
