import { Fault, makeInvalidFault } from '../../base/fault.ts'

/** SQL made from JSON: text in parts, some of which name the member of the JSON that they come from. */
export type MarkedSql =
  | string
  | readonly MarkedSql[]
  | { readonly pointer: string; readonly sql: MarkedSql }

export function markSql(pointer: string, sql: MarkedSql): MarkedSql {
  return { pointer, sql }
}

export function joinSql(parts: readonly MarkedSql[], between: string): MarkedSql {
  return parts.flatMap((part, at) => (at === 0 ? [part] : [between, part]))
}

export type SqlWithPointers = {
  readonly text: string
  /** Turns a fault about the text into one that names the member of the JSON. */
  readonly relocated: (error: unknown) => unknown
}

export function locateSql(sql: MarkedSql): SqlWithPointers {
  const texts: string[] = []
  const spans: { readonly from: number; to: number; readonly pointer: string }[] = []
  let length = 0
  const write = (part: MarkedSql): void => {
    if (typeof part === 'string') {
      texts.push(part)
      length += part.length
    } else if ('pointer' in part) {
      const span = { from: length, to: length, pointer: part.pointer }
      spans.push(span)
      write(part.sql)
      span.to = length
    } else part.forEach(write)
  }
  write(sql)
  const pointerAt = (position: number) =>
    spans.findLast(({ from, to }) => from <= position && position < to)?.pointer
  const relocated = (error: unknown) => {
    if (!(error instanceof Fault) || error.details?.field !== '/sql') return error
    const { position, problem } = error.details
    const pointer = typeof position === 'number' ? pointerAt(position) : undefined
    const words = typeof position === 'number' ? `has ${problem}` : String(problem)
    return makeInvalidFault(pointer ?? spans[0]?.pointer ?? '', words)
  }
  return { text: texts.join(''), relocated }
}

/** The longest name that the parser of SQL keeps whole. */
const nameBytesMax = 63

/** Puts any name between double quotes, whatever is in it. */
export function quoteAnyName(name: string, pointer: string): string {
  if (Buffer.byteLength(name) > nameBytesMax)
    throw makeInvalidFault(pointer, `has a name of more than ${nameBytesMax} bytes`)
  return `"${name.replaceAll('"', '""')}"`
}
