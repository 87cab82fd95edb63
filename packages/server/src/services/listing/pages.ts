import { formatCsvLine, formatCsvText, quoteCsvCell } from '../../base/csv.ts'
import { encodeInTurns } from '../../base/encode-in-turns.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import { HttpReply } from '../../http/reply.ts'
import { findSingleHeader, type RequestInfo } from '../../http/request-info.ts'
import { chooseFormat, contentTypes } from '../queries/answer-format.ts'

export const pageSizeDefault = 100

/** Encodes the place where a list goes on. */
export function encodePlace(...parts: readonly (string | number | bigint)[]): string {
  return Buffer.from(JSON.stringify(parts.map(String))).toString('base64url')
}

/** Parses a cursor whose parts have these forms; undefined where the list begins. */
export function parsePlace(
  cursor: string | undefined,
  forms: readonly RegExp[],
): readonly string[] | undefined {
  if (cursor === undefined) return undefined
  const parts = decodeParts(cursor)
  if (
    parts?.length !== forms.length ||
    !parts.every((part, at) => forms[at]?.test(part)) ||
    encodePlace(...parts) !== cursor
  )
    throw makeInvalidFault('/query/cursor', 'is not one of this list')
  return parts
}

export const wholeNumber = /^\d{1,18}$/
export const amount = /^\d{1,78}$/
export const anyText = /^[^\0]{0,200}$/u

function decodeParts(cursor: string): readonly string[] | undefined {
  try {
    const parts: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    const isList = Array.isArray(parts) && parts.every((part) => typeof part === 'string')
    return isList ? parts : undefined
  } catch {
    return undefined
  }
}

/** A page, and the cursor of the rest where there is one: of the rows one more was read than is given. */
export function splitPage<T>(
  rows: readonly T[],
  limit: number,
  encode: (last: T) => string,
): { readonly page: readonly T[]; readonly next: string | null } {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return { page, next: rows.length > limit && last !== undefined ? encode(last) : null }
}

/** Returns whether the client asked for CSV. */
export function isCsvAsked(info: RequestInfo, format: string | undefined): boolean {
  return (format ?? chooseFormat(findSingleHeader(info, 'accept'))) === 'csv'
}

type Cell = string | number | null

/** Makes the CSV of a list, which may have thousands of rows: other requests have their turns meanwhile. */
export async function makeCsvReply<T>(
  columns: readonly string[],
  rows: readonly T[],
  {
    next,
    toCells,
  }: { readonly next: string | null; readonly toCells: (row: T) => readonly Cell[] },
): Promise<HttpReply> {
  return new HttpReply(await encodeInTurns(iterateLines(columns, rows, toCells)), {
    contentType: contentTypes.csv,
    headers: next === null ? {} : { 'x-next-cursor': next },
  })
}

function* iterateLines<T>(
  columns: readonly string[],
  rows: readonly T[],
  toCells: (row: T) => readonly Cell[],
): Generator<string, void> {
  yield formatCsvLine(columns.map(formatCsvText))
  for (const row of rows) yield formatCsvLine(toCells(row).map(formatCell))
}

/** A negative amount is no formula. */
function formatCell(cell: Cell): string {
  if (cell === null) return ''
  return typeof cell === 'number' || /^-?\d+$/.test(cell)
    ? quoteCsvCell(String(cell))
    : formatCsvText(cell)
}
