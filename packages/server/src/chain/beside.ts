import type { SqlStatement } from '../database/sql.ts'

/** Rows that are written with the block of some entries, in one statement: both are there, or neither. */
export type Beside = {
  /**
   * Prints what writes them, as the parts of a WITH; `height` is the block's. A constraint that one of them violates
   * refuses rows and entries together.
   */
  readonly print: (height: number) => readonly SqlStatement[]
}

/** A constraint refused what was to be written beside a block: nothing of it is there, nor its entries. */
export class BesideRefusedError extends Error {
  override readonly name = 'BesideRefusedError'
}
