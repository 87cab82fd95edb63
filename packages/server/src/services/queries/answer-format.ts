import { formatCsvLine, formatCsvText, quoteCsvCell } from '../../base/csv.ts'
import { listElementTexts, listMemberTexts } from '../../base/json-text.ts'
import type { Page } from '../reading/answer-query.ts'
import { formatLag } from '../reading/view-sources.ts'

export type Format = 'json' | 'csv' | 'ndjson'

/** A writer that makes the body of an answer from its page. */
export type Writer = {
  readonly contentType: string
  readonly text: (page: Page, now: number) => string
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
        text: ({ records }) => formatCsv(listElementTexts(`[${records}]`), columns),
      }
    case 'ndjson':
      return {
        contentType,
        text: ({ records }) =>
          listElementTexts(`[${records}]`)
            .map((item) => `${joinLines(item)}\n`)
            .join(''),
      }
    default:
      return { contentType, text: (page, now) => formatJson(page, of, now) }
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

/** RFC 4180: a header, CRLF, quotes where they are needed. Without columns: the fields of the rows, as they come. */
function formatCsv(items: readonly string[], columns: readonly string[] | undefined): string {
  const rows = items.map(listMemberTexts)
  const names = columns ?? [...new Set(rows.flatMap((row) => [...row.keys()]))]
  const lines = [
    names.map(formatCsvText),
    ...rows.map((row) => names.map((name) => formatCell(row.get(name)))),
  ]
  return lines.map(formatCsvLine).join('')
}

/** Numbers keep their digits; objects and lists are their JSON text; null and missing are empty. */
function formatCell(text: string | undefined): string {
  if (text === undefined || text === 'null') return ''
  if (!text.startsWith('"')) return quoteCsvCell(text)
  const said: unknown = JSON.parse(text)
  return formatCsvText(String(said))
}

/** A JSON string contains no line break, so each line break is white space between its parts. */
function joinLines(item: string): string {
  return item.replace(/[\r\n]+/g, ' ')
}
