/** Characters of a broken text that are scanned: other requests wait meanwhile. */
const charsMax = 64 * 1024

const space = /[ \t\n\r]*/y
const token =
  /[{}[\],:]|"[^"\\\p{Cc}]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\p{Cc}]*)*"|(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)(?![\w.+-])/uy

type ExpectedToken = 'value' | 'value or ]' | 'key' | 'key or }' | ':' | 'next'

/**
 * Finds the place where a text that JSON.parse refuses stops being JSON, in lines and columns as editors count: the
 * first impossible token, or the end. Undefined where that is beyond `charsMax`. (The message of JSON.parse names a
 * place only sometimes.)
 */
export function findBreak(
  text: string,
): { readonly line: number; readonly column: number } | undefined {
  const open: ('{' | '[')[] = []
  let wanted: ExpectedToken = 'value'
  let at = 0
  while (at <= charsMax) {
    at += matchAt(space, text, at).length
    const found = matchAt(token, text, at)
    const next: ExpectedToken | undefined =
      found === '' ? undefined : findNextExpected(wanted, found, open)
    if (next === undefined) return toPlace(text, at)
    wanted = next
    at += found.length
  }
  return undefined
}

/** Returns what may follow a token; undefined where the token cannot stand. Updates `open`. */
function findNextExpected(
  wanted: ExpectedToken,
  found: string,
  open: ('{' | '[')[],
): ExpectedToken | undefined {
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

function toPlace(text: string, at: number): { line: number; column: number } {
  const lines = text.slice(0, at).split('\n')
  return { line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1 }
}
