import type { Row } from './send-query.ts'
import type { SqlStatement } from './sql.ts'

export type Queryable = {
  /**
   * The rows of one statement. int8 arrives as bigint, bytea as Buffer; numeric, JSON and timestamps as text.
   * `name` prepares the statement under this name; without it repeated texts are named by themselves.
   */
  readonly query: <R extends Row = Row>(
    statement: SqlStatement,
    options?: { readonly name?: string },
  ) => Promise<R[]>
  /** The number of rows that the statement changed. */
  readonly execute: (statement: SqlStatement) => Promise<number>
}

export type TransactionOptions = {
  /** All statements see one snapshot; writes may then fail with a transient conflict. */
  readonly isolation?: 'repeatable read'
  /** For each statement of this transaction, instead of the pool's; 0 is no limit. */
  readonly statementTimeoutMs?: number
  /**
   * The commit is answered before the disk has it: a crash may lose the transaction as a whole, together with
   * every later relaxed one, but never tears it. For what can be made anew from what was durable before.
   */
  readonly relaxed?: boolean
  /** The server gives its statements no processes beside their own; plans that were made with some obey too. */
  readonly withoutWorkers?: boolean
}
