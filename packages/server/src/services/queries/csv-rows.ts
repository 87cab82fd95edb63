import { isValueToken, JsonScanner } from '@tollbase/verify/json-scanner'
import { awaitTurn } from '../../base/await-turn.ts'
import {
  formatCsvLine,
  formatCsvText,
  formatCsvValue,
  iterateLongCsvValue,
} from '../../base/csv.ts'
import { charsAtOnce } from '../../base/encode-in-turns.ts'
import type { JsonSource } from '../../base/json-source.ts'

/** The columns of a CSV, and where its rows have their cells. */
export type CsvRows = {
  readonly names: readonly string[]
  /** For each cell of a row: the number of its column, and the offsets of its value. */
  readonly rows: readonly (readonly number[])[]
}

/**
 * Locates the cells of rows, which are the objects of a list, in turns with other requests. Without columns there is one
 * for each name in them, as they come; `refuseMany` is told how many there are by then, and throws where it is too many.
 */
export async function locateCells(
  list: JsonSource,
  columns: readonly string[] | undefined,
  refuseMany: (columns: number) => void,
): Promise<CsvRows> {
  const places = new Map((columns ?? []).map((name, at) => [name, at]))
  const findColumn = (name: string): number | undefined => {
    const known = places.get(name)
    if (known !== undefined || columns !== undefined) return known
    refuseMany(places.size + 1)
    places.set(name, places.size)
    return places.size - 1
  }
  const scanner = new JsonScanner(list)
  const rows: number[][] = []
  let pauseAt = charsAtOnce
  scanner.next()
  for (let token = scanner.next(); isValueToken(token); token = scanner.next()) {
    const row: number[] = []
    while (scanner.next() === 'key') {
      const column = findColumn(scanner.parseString())
      const outside = scanner.depth
      scanner.next()
      const { start } = scanner
      for (;;) {
        if (scanner.end >= pauseAt) {
          pauseAt = scanner.end + charsAtOnce
          await awaitTurn()
        }
        if (scanner.depth <= outside) break
        scanner.next()
      }
      if (column !== undefined) row.push(column, start, scanner.end)
    }
    rows.push(row)
  }
  return { names: columns ?? [...places.keys()], rows }
}

/** Iterates over the lines of a CSV, or parts of them: a header, CRLF, quotes where they are needed. */
export function* iterateCsv(
  list: JsonSource,
  { names, rows }: CsvRows,
  noteRow: () => void,
): Generator<string, void> {
  yield formatCsvLine(names.map(formatCsvText))
  const cells = names.map(() => '')
  for (const row of rows) {
    cells.fill('')
    const long = new Map<number, string>()
    for (let at = 0; at < row.length; at += 3) {
      const [column = 0, start = 0, end = 0] = [row[at], row[at + 1], row[at + 2]]
      const json = list.cut(start, end)
      if (json.length > charsAtOnce) long.set(column, json)
      else cells[column] = formatCsvValue(json)
    }
    if (long.size === 0) yield formatCsvLine(cells)
    else yield* iterateLongLine(cells, long)
    noteRow()
  }
}

function* iterateLongLine(
  cells: readonly string[],
  long: ReadonlyMap<number, string>,
): Generator<string, void> {
  for (const [column, cell] of cells.entries()) {
    if (column > 0) yield ','
    const json = long.get(column)
    if (json === undefined) yield cell
    else yield* iterateLongCsvValue(json)
  }
  yield '\r\n'
}
