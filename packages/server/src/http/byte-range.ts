/** The first and the last byte, both included, counted from 0. */
export type ByteRange = { readonly start: number; readonly end: number }

const single = /^bytes=(\d{0,15})-(\d{0,15})$/

/**
 * Reads a Range header (RFC 9110, 14.2) of content of this size. Undefined where it asks for all of it, for several
 * ranges, or is no range of bytes: such a header is ignored, and the whole is sent.
 */
export function parseRange(
  header: string | undefined,
  size: number,
): ByteRange | 'unsatisfiable' | undefined {
  const [, first = '', last = ''] = single.exec(header?.trim().toLowerCase() ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first === '') {
    const count = Math.min(Number(last), size)
    return count === 0 ? 'unsatisfiable' : { start: size - count, end: size - 1 }
  }
  const start = Number(first)
  if (last !== '' && Number(last) < start) return undefined
  if (start >= size) return 'unsatisfiable'
  return { start, end: last === '' ? size - 1 : Math.min(Number(last), size - 1) }
}
