import { charsAtOnce, iteratePieces } from './encode-in-turns.ts'

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
export function formatCsvValue(json: string): string {
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

/** Iterates over the parts of the cell of a long JSON value, which is quoted without a look for what needs it. */
export function* iterateLongCsvValue(json: string): Generator<string, void> {
  let mark = '"'
  const isText = json.startsWith('"')
  for (const piece of isText ? iterateTextPieces(json) : iteratePieces(json)) {
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
    const most = Math.min(from + charsAtOnce, end)
    // An escape is two characters, or six.
    while (to < most) to += json[to] !== '\\' ? 1 : json[to + 1] === 'u' ? 6 : 2
    yield JSON.parse(`"${json.slice(from, to)}"`)
    from = to
  }
}

function doubleQuotes(text: string): string {
  return text.replaceAll('"', '""')
}
