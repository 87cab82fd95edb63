import type { Row } from './send-query.ts'
import type { SqlStatement } from './sql.ts'

export type Queryable = {
  /**
   * Returns the rows of one statement. int8 arrives as bigint, bytea as Buffer; numeric, JSON and timestamps as
   * text. `name` prepares the statement under this name; without it repeated texts get names automatically.
   */
  readonly query: <R extends Row = Row>(
    statement: SqlStatement,
    options?: { readonly name?: string },
  ) => Promise<R[]>
  /** Runs one statement and returns the number of rows that it changed. */
  readonly execute: (statement: SqlStatement) => Promise<number>
}

export type TransactionOptions = {
  /** All statements see one snapshot; writes may then fail with a transient conflict. */
  readonly isolation?: 'repeatable read'
  /** Time-out of each statement of this transaction, instead of the pool's; 0 is no limit. */
  readonly statementTimeoutMs?: number
  /**
   * Answers the commit before the disk has it: a crash may lose the transaction as a whole, together with every
   * later relaxed one, but never tears it. For data that can be made anew from what was durable before.
   */
  readonly relaxed?: boolean
  /**
   * The processes that the server gives a statement beside its own. `none`: also where a plan was made with some.
   * `ready`: as soon as they save anything by its reckoning.
   */
  readonly workers?: 'none' | 'ready'
  /** Cancels what runs once it is aborted. */
  readonly signal?: AbortSignal | undefined
}
