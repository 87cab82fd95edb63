import { decodeUtf8, encodeUtf8, FormatError } from './bytes.ts'
import { isFields } from './fields.ts'

export type Json =
  | string
  | number
  | boolean
  | null
  | readonly Json[]
  | { readonly [name: string]: Json }

/** The subject of an entry; `type` is its first member. No member may be undefined. */
export type EntryHeader = { readonly type: string; readonly [name: string]: Json }

export type Entry = { readonly header: EntryHeader; readonly body: string }

/**
 * Formats an entry as text: one line of JSON (the header, as JSON.stringify writes it), a line feed, and the body
 * exactly as it was sent (possibly empty). Its UTF-8 bytes are the input of the tree's leaf.
 */
export function formatEntry(header: EntryHeader, body: string): string {
  return `${JSON.stringify(header)}\n${body}`
}

/** Encodes the leaf input: `formatEntry` as UTF-8. */
export function encodeEntry(header: EntryHeader, body: string): Uint8Array {
  return encodeUtf8(formatEntry(header, body))
}

/** Decodes an entry of one's own log; throws a FormatError where the bytes are not an entry. */
export function decodeEntry(bytes: Uint8Array): Entry {
  return parseEntry(decodeUtf8(bytes))
}

/** Decodes an entry that a stranger shows: its header must have the one form that `formatEntry` writes. */
export function decodeShownEntry(bytes: Uint8Array): Entry {
  const text = decodeUtf8(bytes)
  const entry = parseEntry(text)
  if (formatEntry(entry.header, entry.body) !== text)
    throw new FormatError("the entry's header is not in its standard form")
  return entry
}

function parseEntry(text: string): Entry {
  const lineEnd = text.indexOf('\n')
  if (lineEnd < 0) throw new FormatError('an entry has a header line')
  const header = parseHeader(text.slice(0, lineEnd))
  if (!isHeader(header))
    throw new FormatError("an entry's header is an object whose first member is a string `type`")
  return { header, body: text.slice(lineEnd + 1) }
}

function isHeader(value: unknown): value is EntryHeader {
  return isFields(value) && Object.keys(value)[0] === 'type' && typeof value.type === 'string'
}

function parseHeader(line: string): unknown {
  try {
    return JSON.parse(line)
  } catch {
    throw new FormatError("the entry's header is not JSON")
  }
}
