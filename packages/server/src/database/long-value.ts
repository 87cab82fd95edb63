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
  const pieces = [requirePresent(first.piece ?? undefined, 'the value')]
  const length = first.bytes ?? 0
  for (let from = pieceBytes; from < length; from += pieceBytes) {
    const [next] = await database.query<FirstPiece>(sql`SELECT ${printPiece(column, from)} ${rows}`)
    if (next?.row_version !== first.row_version || next.piece === null) return undefined
    pieces.push(next.piece)
  }
  return pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)
}

function printPiece(column: SqlStatement, from: number): SqlStatement {
  return sql`substring(${column} FROM ${sql.integer(from + 1)} FOR ${sql.integer(pieceBytes)}) AS piece,
    octet_length(${column}) AS bytes, xmin::text AS row_version`
}
