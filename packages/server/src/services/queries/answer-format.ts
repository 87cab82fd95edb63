import { limits } from '@tollbase/contract/limits'
import { charsAtOnce, encodeInTurns, iteratePieces } from '../../base/encode-in-turns.ts'
import { Fault } from '../../base/fault.ts'
import { toListSource } from '../../base/json-source.ts'
import { listElementTextsInTurns } from '../../base/json-text.ts'
import { makeAbortedFault, type Turn } from '../../base/semaphore.ts'
import { SharedRoom } from '../../base/shared-room.ts'
import type { Page } from '../reading/answer-query.ts'
import { findFittingLimit } from '../reading/find-fitting-limit.ts'
import { formatLag } from '../reading/view-sources.ts'
import { iterateCsv, locateCells } from './csv-rows.ts'

export type Format = 'json' | 'csv' | 'ndjson'

/** The time of a read, and the turn that it had. */
type Run = { readonly now: number; readonly turn: Turn }

/** A writer that makes the body of an answer from its page; a long one in turns with other requests. */
export type Writer = {
  readonly contentType: string
  readonly text: (page: Page, run: Run) => string | Promise<string | Buffer>
}

export const contentTypes: Readonly<Record<Format, string>> = {
  json: 'application/json; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson; charset=utf-8',
}

/** `columns` are those of the query; undefined where its rows are whole records. */
export function makeWriter(
  format: Format,
  of: { readonly query: string; readonly version: number },
  columns: readonly string[] | undefined,
): Writer {
  const contentType = contentTypes[format]
  switch (format) {
    case 'csv':
      return {
        contentType,
        text: (page, { turn }) =>
          writeOneOfFew(page, turn, () => formatCsv(page, { columns, turn })),
      }
    case 'ndjson':
      return {
        contentType,
        text: (page, { turn }) => writeOneOfFew(page, turn, () => formatLines(page, turn)),
      }
    default:
      return { contentType, text: (page, { now }) => formatJson(page, of, now) }
  }
}

const known: ReadonlyMap<string, Format> = new Map<string, Format>([
  ['application/json', 'json'],
  ['application/*', 'json'],
  ['*/*', 'json'],
  ['text/csv', 'csv'],
  ['application/x-ndjson', 'ndjson'],
  ['application/ndjson', 'ndjson'],
  ['application/jsonl', 'ndjson'],
  ['application/x-jsonlines', 'ndjson'],
])

/**
 * Chooses the format that a client prefers (RFC 9110, 12.5.1): the first of equals; JSON where it names none that
 * there is.
 */
export function chooseFormat(accept: string | undefined): Format {
  let best: { format: Format; weight: number } = { format: 'json', weight: 0 }
  for (const range of (accept ?? '').split(',')) {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    const format = known.get(type)
    const quality = parameters.find((one) => one.startsWith('q='))?.slice('q='.length)
    const weight = quality === undefined ? 1 : Number(quality)
    if (format !== undefined && weight > best.weight) best = { format, weight }
  }
  return best.format
}

function formatJson(
  { row, records }: Page,
  { query, version }: { readonly query: string; readonly version: number },
  now: number,
): string {
  return `{"data":[${records}],"count":${row.count},"query":${JSON.stringify(query)},"version":${version},"as_of":{"block_height":${row.height},"sequence":${row.sequence}}${formatLag(row, now)}}`
}

const { formattedCharsMax: max } = limits
const kept = { max, forNew: max / 4, forPaid: max / 4 }
const ofApplications = new SharedRoom({ ...kept, ofHolderMax: max / 2 })
const ofCallers = new SharedRoom({ ...kept, ofHolderMax: max / 4 })

/** Bounds the characters of the records of which other formats are being made: those wait in memory meanwhile. */
async function writeOneOfFew<T>(
  { records: { length } }: Page,
  { application, caller, rank }: Turn,
  write: () => Promise<T>,
): Promise<T> {
  if (length <= charsAtOnce) return write()
  const isPaid = rank === 'paid'
  const places = [
    // Those without a key take nothing of the share of an application's own keys.
    ofApplications.open(`${rank} ${application}`, { isPaid }),
    ofCallers.open(caller, { isPaid }),
  ]
  try {
    if (!places.every((place) => place.set(length)))
      throw new Fault('UNAVAILABLE', {
        message:
          'Too many large answers are being made as CSV or NDJSON; ask for less, or for JSON, or try again shortly',
        retryAfterSeconds: 2,
      })
    return await write()
  } finally {
    for (const place of places) place.set(0)
  }
}

async function formatLines({ records }: Page, turn: Turn): Promise<string | Buffer> {
  const items = await listElementTextsInTurns(records)
  return encodeInTurns(iterateLines(items), () => refuseGone(turn))
}

function* iterateLines(items: readonly string[]): Generator<string, void> {
  for (const item of items) {
    // A JSON string contains no line break, so each line break is white space between its parts.
    for (const piece of iteratePieces(item)) yield piece.replace(/[\r\n]+/g, ' ')
    yield '\n'
  }
}

/**
 * Formats RFC 4180. Without columns: the fields of the rows, as they come. The database has bounded the JSON alone: a
 * few records of which each has other fields make a large CSV, and quotation marks are doubled.
 */
async function formatCsv(
  { records }: Page,
  { columns, turn }: { readonly columns: readonly string[] | undefined; readonly turn: Turn },
): Promise<string | Buffer> {
  const list = toListSource(records)
  const cells = await locateCells(list, columns, refuseColumns)
  const { rows, names } = cells
  // Each line has a separator for each of its cells.
  const separators = rows.length * (names.length + 1)
  if (separators > limits.resultBytesMax)
    throw makeLargeFault(rows.length, separators + list.length)
  let written = 0
  return encodeInTurns(
    iterateCsv(list, cells, () => {
      written += 1
    }),
    (bytes) => {
      refuseGone(turn)
      if (bytes > limits.resultBytesMax) throw makeLargeFault(written, bytes)
    },
  )
}

/** Nobody waits for the answer of a reader who has gone; one that is bought is made for his next request. */
function refuseGone({ getSignal }: Turn): void {
  if (getSignal?.().aborted === true) throw makeAbortedFault()
}

function refuseColumns(columns: number): void {
  const { csvColumnsMax: columnsMax } = limits
  if (columns > columnsMax)
    throw new Fault('RESULT_TOO_LARGE', {
      message: `The records have more than ${columnsMax} fields together, and a CSV has a column for each; ask for fewer records, or for JSON or NDJSON`,
      details: { columns_max: columnsMax },
    })
}

/** Names a limit in powers of two, as the other refusals do, for which nothing is charged either. */
function makeLargeFault(rows: number, bytes: number): Fault {
  const { resultBytesMax } = limits
  const limit = findFittingLimit({ count: rows, bytes }, resultBytesMax)
  const remedy = limit === undefined ? '' : `give a limit, such as ${limit}, or `
  return new Fault('RESULT_TOO_LARGE', {
    message: `The answer has more than ${resultBytesMax} bytes as CSV; ${remedy}ask for JSON or NDJSON`,
    details: { bytes_max: resultBytesMax, ...(limit !== undefined && { limit }) },
  })
}
