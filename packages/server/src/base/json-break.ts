/** So far a broken text is looked through: it is done while others wait. */
const charsMax = 64 * 1024

const space = /[ \t\n\r]*/y
const token =
  /[{}[\],:]|"[^"\\\p{Cc}]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\p{Cc}]*)*"|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/uy

type Wanted = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | 'next'

/**
 * Where a text that JSON.parse refuses stops being JSON, as editors count: the token that cannot stand there, or the
 * end. Undefined where that is further than is looked. (What JSON.parse says itself names a place at times only.)
 */
export function breakOf(
  text: string,
): { readonly line: number; readonly column: number } | undefined {
  const open: ('{' | '[')[] = []
  let wanted: Wanted = 'value'
  let at = 0
  while (at <= charsMax) {
    at += matchAt(space, text, at).length
    const found = matchAt(token, text, at)
    const next: Wanted | undefined = found === '' ? undefined : after(wanted, found, open)
    if (next === undefined) return placeOf(text, at)
    wanted = next
    at += found.length
  }
  return undefined
}

/** What may come after a token; undefined where it cannot stand. `open` is brought up to date. */
function after(wanted: Wanted, found: string, open: ('{' | '[')[]): Wanted | undefined {
  const inside = open.at(-1)
  const closes = (found === '}' && inside === '{') || (found === ']' && inside === '[')
  const mayClose = wanted === 'next' || wanted === 'key or }' || wanted === 'value or ]'
  if (closes && mayClose) {
    open.pop()
    return 'next'
  }
  switch (wanted) {
    case ':':
      return found === ':' ? 'value' : undefined
    case 'next':
      if (found !== ',' || inside === undefined) return undefined
      return inside === '{' ? 'key' : 'value'
    case 'key':
    case 'key or }':
      return found.startsWith('"') ? ':' : undefined
    default:
      if (found === '{' || found === '[') {
        open.push(found)
        return found === '{' ? 'key or }' : 'value or ]'
      }
      return ['}', ']', ',', ':'].includes(found) ? undefined : 'next'
  }
}

function matchAt(form: RegExp, text: string, at: number): string {
  form.lastIndex = at
  return form.exec(text)?.[0] ?? ''
}

function placeOf(text: string, at: number): { line: number; column: number } {
  const lines = text.slice(0, at).split('\n')
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
}
