import { Fault } from '../../base/fault.ts'
import { makeAbortedFault, type Semaphore, type Turn } from '../../base/semaphore.ts'
import type { Database, Queryable } from '../../database/database.ts'
import type { Row } from '../../database/send-query.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import type { ListRow } from '../../query/compile-list.ts'
import { findPassedBound } from '../../query/run-bound.ts'
import type { CompiledStatement } from '../../query/sql-text.ts'
import { toDeletedFault } from '../access/find-sources.ts'
import type { ShortReads } from './short-reads.ts'

export type RunOptions = {
  /** True where it may take long, so that it waits for a slot. */
  readonly isHeavy: boolean
  /** True where its best plan is the same for all values. */
  readonly keepsPlan?: boolean
  readonly turn: Turn
}

/** The connections and the limits by which queries run. */
export type QueryRunner = {
  /** Connections of their own for lists and SQL: however slow these are, writes and payments go on. */
  readonly database: Database
  /** Limits SQL, joins and groups, which may take long, and lists that prove slow. */
  readonly semaphore: Semaphore
  /** Runs lists that ought to be short. */
  readonly shortReads: ShortReads
}

/**
 * Runs a compiled query (`compileList`, `compileQuery`), which names the tables of its collections and views, and returns
 * its one row. A heavy query waits for a slot, so that such queries never hold
 * all connections of lists, and so does a list that proves slow; the connections are read-only, with limits of time
 * and of temporary space. There is no limit by the planner's estimate: it would tell callers that have not paid how
 * much a collection holds.
 */
export async function runQuery(
  runner: QueryRunner,
  compiled: CompiledStatement,
  options: RunOptions,
): Promise<ListRow> {
  const statement = sql.compiled(compiled.text, compiled.values)
  const [row] = await runRead<ListRow>(runner, statement, options)
  // A crash of the database empties plaintext tables, with their positions.
  if (row === undefined)
    throw new Fault('UNAVAILABLE', {
      internal: 'the position of the answer is missing',
      retryAfterSeconds: 1,
    })
  return row
}

/** Runs any other read that may take long by the same limits, and returns its rows. */
export async function runRead<R extends Row>(
  runner: QueryRunner,
  statement: SqlStatement,
  options: RunOptions,
): Promise<R[]> {
  try {
    return await runStatement(runner, statement, options)
  } catch (error) {
    if (options.turn.getSignal?.().aborted === true) throw makeAbortedFault()
    throw toQueryFault(error) ?? toDeletedFault(error) ?? error
  }
}

/** Reads whose statements run by these limits. */
export type Reader = Pick<Queryable, 'query'>

/** Makes a reader for statements that may take long, each in the caller's turn. */
export function makeReader(runner: QueryRunner, turn: Turn): Reader {
  return { query: (statement) => runRead(runner, statement, { isHeavy: false, turn }) }
}

async function runStatement<R extends Row>(
  { database, semaphore, shortReads }: QueryRunner,
  statement: SqlStatement,
  { isHeavy, keepsPlan = false, turn }: RunOptions,
): Promise<R[]> {
  const runHeavy = () => database.queryHeavy<R>(statement, { signal: turn.getSignal?.() })
  if (isHeavy) return semaphore.run(turn, runHeavy)
  const read = { turn, text: statement.text }
  const rows = await shortReads.attempt(read, () =>
    database.queryShort<R>(statement, { keepsPlan }),
  )
  return rows ?? semaphore.run(turn, () => shortReads.learn(read, runHeavy))
}

/**
 * Maps PostgreSQL's refusal of a query that is too much for it (SQLSTATE) to a fault, without its text, which may
 * tell values.
 */
export function toQueryFault(error: unknown): Fault | undefined {
  const passed = findPassedBound(error)
  if (passed !== undefined)
    return new Fault('QUERY_TOO_EXPENSIVE', {
      message: `The query is too expensive: ${passed}`,
      cause: error,
    })
  const state = error instanceof Error && 'code' in error ? String(error.code) : ''
  // query_canceled: the statement's time ran out.
  if (state === '57014') return new Fault('QUERY_TIMEOUT', { cause: error })
  // Program limits, among them the depth of the stack; memory; temporary space.
  if (/^54[0-9A-Z]{3}$/.test(state) || state === '53200' || state === '53400')
    return new Fault('QUERY_TOO_EXPENSIVE', { cause: error })
  // numeric_value_out_of_range, datetime_field_overflow
  if (state === '22003' || state === '22008')
    return new Fault('VALIDATION_FAILED', {
      message: 'The query computes with a number or a time that is out of range',
      cause: error,
    })
  // invalid_parameter_value: a zone may be newer than the database's own list.
  if (state === '22023')
    return new Fault('VALIDATION_FAILED', {
      message: 'The query names a time zone that this database does not know',
      cause: error,
    })
  return undefined
}
