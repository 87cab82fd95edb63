/** Formats a line of CSV (RFC 4180) of cells that are quoted where they need it. */
export function formatCsvLine(cells: readonly string[]): string {
  return `${cells.join(',')}\r\n`
}

/** Formats a cell of text: a spreadsheet would take some texts for formulas, and run a stranger's input. */
export function formatCsvText(text: string): string {
  return quoteCsvCell(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text)
}

/** Quotes a cell where it must be; numbers and what else is no text go through this alone. */
export function quoteCsvCell(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
