import { requirePresent } from '../base/assert.ts'
import type { Queryable } from './queryable.ts'
import { type SqlStatement, sql } from './sql.ts'

/**
 * Bytes of a bytea that are read at once. pg makes each value a text first, with two digits a byte, so 8 MiB at once
 * hold the event loop for 100 ms.
 */
const pieceBytes = 256 * 1024

/** A bytea as `printFirstPiece` reads it: its first bytes, its length, and what changes whenever its row does. */
export type FirstPiece = {
  readonly piece: Buffer | null
  readonly bytes: number | null
  readonly row_version: string
}

/** Prints the columns of a FirstPiece; the table is the only one of its statement. */
export function printFirstPiece(column: SqlStatement): SqlStatement {
  return printPiece(column, 0)
}

/**
 * Reads what follows the first piece, a piece at a time, so that others use the connection and the event loop in
 * between. `rows` is the FROM and WHERE that name the row. Undefined where the row was changed meanwhile: its caller
 * begins anew.
 */
export async function readRest(
  database: Queryable,
  { column, rows }: { readonly column: SqlStatement; readonly rows: SqlStatement },
  first: FirstPiece,
): Promise<Buffer | undefined> {
  const piece = requirePresent(first.piece, 'the value')
  const length = first.bytes ?? 0
  if (piece.length >= length) return piece
  // A buffer of its own, in place: pieces that are joined at the end would stand beside the whole.
  const whole = Buffer.allocUnsafeSlow(length)
  piece.copy(whole)
  for (let from = pieceBytes; from < length; from += pieceBytes) {
    const [next] = await database.query<FirstPiece>(sql`SELECT ${printPiece(column, from)} ${rows}`)
    if (next?.row_version !== first.row_version || next.piece === null) return undefined
    next.piece.copy(whole, from)
  }
  return whole
}

function printPiece(column: SqlStatement, from: number): SqlStatement {
  // The place is a value: as a part of the text it would make each piece a statement with a plan of its own.
  return sql`substring(${column} FROM ${from + 1}::int4 FOR ${sql.integer(pieceBytes)}) AS piece,
    octet_length(${column}) AS bytes, xmin::text AS row_version`
}
