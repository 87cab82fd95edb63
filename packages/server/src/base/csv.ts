import { iteratePieces, pieceChars } from './encode-in-turns.ts'

/** Formats a line of CSV (RFC 4180) of cells that are quoted where they need it. */
export function formatCsvLine(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`
}

/** Formats a cell of text: a spreadsheet would take some texts for formulas, and run a stranger's input. */
export function formatCsvText(text: string): string {
  return quoteCsvCell(formula.test(text) ? `'${text}` : text)
}

const formula = /^[=+\-@\t\r]/

/** Quotes a cell where it must be; numbers and what else is no text go through this alone. */
export function quoteCsvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${doubleQuotes(text)}"` : text
}

/** Formats the cell of a JSON value: numbers keep their digits, lists and objects are their text, null is empty. */
function formatCsvValue(json: string): string {
  switch (json[0]) {
    case '"':
      return formatCsvText(json.includes('\\') ? JSON.parse(json) : json.slice(1, -1))
    case '{':
    case '[':
      return quoteCsvCell(json)
    default:
      return json === 'null' ? '' : json
  }
}

/** A cell; a long one is made in pieces, and quoted without a look for what needs it. */
export type CsvCell = string | Generator<string, void>

/** Makes a cell of text of any length. */
export function makeCsvTextCell(text: string): CsvCell {
  return text.length <= pieceChars
    ? formatCsvText(text)
    : iterateQuoted(iteratePieces(text), { isText: true })
}

/** Makes the cell of a JSON value of any length. */
export function makeCsvCell(json: string): CsvCell {
  if (json.length <= pieceChars) return formatCsvValue(json)
  return json.startsWith('"')
    ? iterateQuoted(iterateTextPieces(json), { isText: true })
    : iterateQuoted(iteratePieces(json), { isText: false })
}

function* iterateQuoted(
  pieces: Iterable<string>,
  { isText }: { readonly isText: boolean },
): Generator<string, void> {
  let mark = '"'
  for (const piece of pieces) {
    if (mark !== '' && isText && formula.test(piece)) mark += "'"
    yield mark + doubleQuotes(piece)
    mark = ''
  }
  yield '"'
}

/** Iterates over the meaning of a JSON string, cut between its characters. */
function* iterateTextPieces(json: string): Generator<string, void> {
  const end = json.length - 1
  for (let from = 1; from < end; ) {
    let to = from
    const most = Math.min(from + pieceChars, end)
    // An escape is two characters, or six.
    while (to < most) to += json[to] !== '\\' ? 1 : json[to + 1] === 'u' ? 6 : 2
    yield JSON.parse(`"${json.slice(from, to)}"`)
    from = to
  }
}

function doubleQuotes(text: string): string {
  return text.replaceAll('"', '""')
}
