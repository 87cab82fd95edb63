import type { PoolClient } from 'pg'
import { assert } from '../base/assert.ts'
import { CommitUnknownError, endsSession, isAftermath, isStalePlan, isUnsent } from './errors.ts'
import type { PreparedNames } from './prepared-names.ts'
import type { Queryable, TransactionOptions } from './queryable.ts'
import { type Opening, type Row, sendQuery } from './send-query.ts'
import { type SqlStatement, sql } from './sql.ts'
import { type Result, Transaction } from './transaction.ts'

/** What all sessions of a pool have in common. */
export type SessionsOf = {
  readonly names: PreparedNames
  readonly statementTimeoutMs: number
  readonly announce: (text: string, connection: object) => void
}

/** How much longer than the server's own time-out we wait for its answer, for a peer that went silent. */
export const answerGraceMs = 30_000
/** With so much to send, what was sent together goes out before its tick is over. */
const corkedBytesMax = 64 * 1024

/** One connection while it is checked out. */
export class Session {
  /** True once the connection must not be used again. */
  broken = false
  readonly #client: PoolClient
  readonly #plans: Set<string>
  readonly #sessions: SessionsOf
  /**
   * Goes out with the first statement of a transaction: a way there and back less. Until that is answered, each later
   * one is done only where BEGIN was.
   */
  #opening: Opening | undefined
  #isCorked = false

  constructor(client: PoolClient, plans: Set<string>, sessions: SessionsOf) {
    this.#client = client
    this.#plans = plans
    this.#sessions = sessions
  }

  /** Of the server's process. */
  get pid(): number {
    // pg keeps it, and its types do not say so.
    return Number(Reflect.get(this.#client, 'processID'))
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
    this.#opening = openingOf(options)
    const tx = new Transaction((statement, name) => this.send(statement, timeoutMs, name))
    try {
      const result = await work(tx)
      await tx.end()
      await this.#commit(timeoutMs)
      return result
    } catch (error) {
      await tx.end()
      await this.#rollback(timeoutMs)
      throw isAftermath(error) ? (tx.failure ?? error) : error
    }
  }

  async apart<T>(
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

  /** Sends one statement: the extended protocol refuses text that holds several. */
  async send(statement: SqlStatement, timeoutMs: number, givenName?: string): Promise<Result> {
    const { text, values } = statement
    const name = givenName ?? this.#sessions.names.nameOf(text)
    if (name !== undefined) this.#plans.add(name)
    this.#cork()
    const opening = this.#opening
    const isFirst = typeof opening === 'object'
    if (isFirst) {
      this.#opening = 'begun'
      for (const each of opening) this.#sessions.announce(each, this.#client)
    }
    this.#sessions.announce(text, this.#client)
    const answerMs = timeoutMs === 0 ? 0 : timeoutMs + answerGraceMs
    try {
      const sent = { text, values, name, timeoutMs: answerMs, opening }
      const answer = sendQuery(this.#client, sent)
      this.#letGo()
      const result = await answer
      if (isFirst) this.#opening = undefined
      return result
    } catch (error) {
      // Of an opening that failed pg believes that it prepared the statement.
      if (endsSession(error) || isFirst) this.broken = true
      if (isStalePlan(error)) this.#sessions.names.forget(text)
      throw error
    }
  }

  /** What is sent without waiting between goes out at once. */
  #cork(): void {
    if (this.#isCorked) return
    this.#isCorked = true
    const { stream } = this.#client.connection
    stream.cork()
    process.nextTick(() => {
      this.#isCorked = false
      stream.uncork()
    })
  }

  /** The server can be at work on much that was sent while more is being made. */
  #letGo(): void {
    const { stream } = this.#client.connection
    if (stream.writableLength < corkedBytesMax) return
    stream.uncork()
    stream.cork()
  }

  async #commit(timeoutMs: number): Promise<void> {
    if (typeof this.#opening === 'object') return
    assert(this.#opening === undefined, wentOn)
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
    if (this.broken || this.#opening !== undefined) return
    try {
      await this.send(sql`ROLLBACK`, timeoutMs)
    } catch {
      // The first error is the one that explains; the connection is not used again.
      this.broken = true
    }
  }
}

const wentOn = 'a transaction went on after one of its statements had failed'

function openingOf({ isolation, relaxed, statementTimeoutMs }: TransactionOptions): Opening {
  return [
    isolation === undefined ? 'BEGIN' : 'BEGIN ISOLATION LEVEL REPEATABLE READ',
    ...(statementTimeoutMs === undefined
      ? []
      : [`SET LOCAL statement_timeout = ${statementTimeoutMs}`]),
    ...(relaxed === true ? ['SET LOCAL synchronous_commit = off'] : []),
  ]
}
