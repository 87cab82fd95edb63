import type { PoolClient } from 'pg'
import { assert } from '../base/assert.ts'
import { CommitUnknownError, endsSession, isAftermath, isStalePlan, isUnsent } from './errors.ts'
import type { PreparedNames } from './prepared-names.ts'
import type { Queryable, TransactionOptions } from './queryable.ts'
import { type Row, sendQuery, sendScript } from './send-query.ts'
import { type SqlStatement, sql } from './sql.ts'
import { type Result, Transaction } from './transaction.ts'

/** The state that all sessions of a pool share. */
export type SessionHost = {
  readonly names: PreparedNames
  readonly statementTimeoutMs: number
  readonly announce: (text: string, connection: object) => void
}

/** Time beyond the server's own time-out that we wait for its answer, in case the peer went silent. */
const answerGraceMs = 30_000

/** When a connection is given up that does not answer; 0 is never. */
export function answerMs(statementTimeoutMs: number): number {
  return statementTimeoutMs === 0 ? 0 : statementTimeoutMs + answerGraceMs
}

/** The facts that are known of a connection from its making on. */
export type Known = {
  /** Process id of the server process. */
  readonly pid: number
  /** Names of the statements prepared there. */
  readonly plans: Set<string>
}

/** A connection that is checked out of the pool. */
export class Session {
  /** True once the connection must not be used again. */
  broken = false
  readonly #client: PoolClient
  readonly #known: Known
  readonly #sessions: SessionHost

  constructor(client: PoolClient, known: Known, sessions: SessionHost) {
    this.#client = client
    this.#known = known
    this.#sessions = sessions
  }

  get pid(): number {
    return this.#known.pid
  }

  async query<R extends Row>(
    statement: SqlStatement,
    options: { readonly name?: string } = {},
  ): Promise<R[]> {
    const send = () => this.send(statement, this.#sessions.statementTimeoutMs, options.name)
    try {
      // pg gives rows untyped; the caller states the shape that its SELECT list has.
      return (await send()).rows as R[]
    } catch (error) {
      // The statement was refused before it ran, and its new name makes the next one plan anew.
      if (isStalePlan(error) && options.name === undefined) return (await send()).rows as R[]
      throw error
    }
  }

  async execute(statement: SqlStatement): Promise<number> {
    return (await this.send(statement, this.#sessions.statementTimeoutMs)).rowCount ?? 0
  }

  async transaction<T>(
    work: (tx: Queryable) => Promise<T>,
    options: TransactionOptions,
  ): Promise<T> {
    const timeoutMs = options.statementTimeoutMs ?? this.#sessions.statementTimeoutMs
    const tx = new Transaction({
      begin: (first) => this.#begin(options, timeoutMs, first),
      send: (statement, name) => this.send(statement, timeoutMs, name),
    })
    try {
      const result = await work(tx)
      await tx.end()
      if (tx.begun === undefined) return result
      await tx.begun
      await this.#commit(timeoutMs)
      return result
    } catch (error) {
      await tx.end()
      if (tx.begun !== undefined) await this.#rollback(timeoutMs)
      throw isAftermath(error) ? (tx.failure ?? error) : error
    }
  }

  async runDedicated<T>(
    work: (session: Queryable, pid: number) => Promise<T>,
    { statementTimeoutMs, lockTimeoutMs }: { statementTimeoutMs: number; lockTimeoutMs: number },
  ): Promise<T> {
    this.broken = true
    const session: Queryable = {
      query: async <R extends Row>(statement: SqlStatement) =>
        (await this.send(statement, statementTimeoutMs)).rows as R[],
      execute: async (statement) => (await this.send(statement, statementTimeoutMs)).rowCount ?? 0,
    }
    const [row] = await session.query<{ pid: number }>(sql`
      SELECT pg_backend_pid() AS pid,
        set_config('statement_timeout', ${String(statementTimeoutMs)}, false),
        set_config('lock_timeout', ${String(lockTimeoutMs)}, false)`)
    return work(session, row?.pid ?? 0)
  }

  /** `timeoutMs` is what the server knows, too. */
  async send(statement: SqlStatement, timeoutMs: number, givenName?: string): Promise<Result> {
    const { text, values } = statement
    const name = givenName ?? this.#sessions.names.findName(text)
    if (name !== undefined) this.#known.plans.add(name)
    this.#sessions.announce(text, this.#client)
    try {
      const sent = { text, values, name, timeoutMs: answerMs(timeoutMs) }
      return await this.#await(sendQuery(this.#client, sent))
    } catch (error) {
      if (isStalePlan(error)) this.#sessions.names.forget(text)
      throw error
    }
  }

  /** Begins, and runs the first statement of the transaction if it is given; returns the result of the last one. */
  #begin(options: TransactionOptions, timeoutMs: number, first?: SqlStatement): Promise<Result> {
    const texts = [...listOpening(options), ...(first === undefined ? [] : [first.text])]
    for (const text of texts) this.#sessions.announce(text, this.#client)
    return this.#await(sendScript(this.#client, texts, answerMs(timeoutMs)))
  }

  async #await(answer: Promise<Result>): Promise<Result> {
    try {
      return await answer
    } catch (error) {
      if (endsSession(error)) this.broken = true
      throw error
    }
  }

  async #commit(timeoutMs: number): Promise<void> {
    let command: string
    try {
      command = (await this.send(sql`COMMIT`, timeoutMs)).command
    } catch (error) {
      if (!endsSession(error) || isUnsent(error)) throw error
      throw new CommitUnknownError('the connection was lost during COMMIT', { cause: error })
    }
    // PostgreSQL answers COMMIT with ROLLBACK, and no error, where an earlier failure was swallowed.
    assert(command === 'COMMIT', wentOn)
  }

  async #rollback(timeoutMs: number): Promise<void> {
    if (this.broken) return
    try {
      await this.send(sql`ROLLBACK`, timeoutMs)
    } catch {
      // The first error is the one that explains; the connection is not used again.
      this.broken = true
    }
  }
}

const wentOn = 'a transaction went on after one of its statements had failed'

function listOpening(options: TransactionOptions): readonly string[] {
  const { isolation, relaxed, statementTimeoutMs, workers } = options
  return [
    isolation === undefined ? 'BEGIN' : 'BEGIN ISOLATION LEVEL REPEATABLE READ',
    ...(statementTimeoutMs === undefined
      ? []
      : [`SET LOCAL statement_timeout = ${statementTimeoutMs}`]),
    ...(relaxed === true ? ['SET LOCAL synchronous_commit = off'] : []),
    ...(workers === undefined ? [] : workerSettings[workers]),
  ]
}

/**
 * PostgreSQL takes a page of a table for a read from a disk, which more processes make no faster, so it would leave
 * alone what is in memory and takes a second of one processor. Most of a table that is read is in memory.
 */
const workerSettings = {
  none: ['SET LOCAL max_parallel_workers = 0'],
  ready: ['SET LOCAL parallel_setup_cost = 200', 'SET LOCAL parallel_tuple_cost = 0.02'],
} as const
