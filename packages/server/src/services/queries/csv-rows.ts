import { isValueToken, JsonScanner } from '@tollbase/verify/json-scanner'
import { awaitTurn } from '../../base/await-turn.ts'
import { type CsvCell, makeCsvCell, makeCsvTextCell } from '../../base/csv.ts'
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

/**
 * Iterates over the parts of a CSV: a header, CRLF, quotes where they are needed. A part is at most a cell, or a piece of
 * a long one, so that others can have their turns within a line.
 */
export function* iterateCsv(
  list: JsonSource,
  { names, rows }: CsvRows,
  noteRow: () => void,
): Generator<string, void> {
  yield* iterateLine(names.length, (column) => makeCsvTextCell(names[column] ?? ''))
  /** For each column, the place of the value's offsets in the row; 0 where it has none. */
  const places = new Uint32Array(names.length)
  for (const row of rows) {
    places.fill(0)
    for (let at = 0; at < row.length; at += 3) places[row[at] ?? 0] = at + 1
    yield* iterateLine(names.length, (column) => {
      const at = places[column] ?? 0
      return at === 0 ? undefined : makeCsvCell(list.cut(row[at] ?? 0, row[at + 1] ?? 0))
    })
    noteRow()
  }
}

function* iterateLine(
  columns: number,
  makeCell: (column: number) => CsvCell | undefined,
): Generator<string, void> {
  let separators = 0
  for (let column = 0; column < columns; column++) {
    const cell = makeCell(column)
    if (cell !== undefined) {
      const before = separators === 1 ? ',' : ','.repeat(separators)
      separators = 0
      if (typeof cell === 'string') yield before + cell
      else {
        yield before
        yield* cell
      }
    }
    separators += 1
  }
  yield `${','.repeat(Math.max(0, separators - 1))}\r\n`
}
