import { availableParallelism } from 'node:os'
import { limits } from '@tollbase/contract/limits'
import { Client, Pool, type PoolClient } from 'pg'
import { assert } from '../base/assert.ts'
import { realWorld, type World } from '../base/world.ts'
import { checkServer } from './check-server.ts'
import { clientConfig, connectTimeoutMs, type DatabaseOptions } from './connection.ts'
import { Crowd } from './crowd.ts'
import { CommitUnknownError, endsSession, isAftermath, isStalePlan, isUnsent } from './errors.ts'
import { Pipelines } from './pipelines.ts'
import { preparedNames } from './prepared.ts'
import { type Opening, type Row, sendQuery } from './send-query.ts'
import { sessionSettings } from './session-settings.ts'
import { type SqlStatement, sql } from './sql.ts'
import { type Result, Transaction } from './transaction.ts'

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
}

export type Database = Queryable & {
  /** A read that ought to be short: where there are pipelines, it goes over a connection that others use meanwhile. */
  readonly quick: <R extends Row = Row>(statement: SqlStatement) => Promise<R[]>
  /** A read that may take long: where many quick ones come in and processors are few, it takes but one of these. */
  readonly long: <R extends Row = Row>(statement: SqlStatement) => Promise<R[]>
  /**
   * Runs `work` and commits; rolls back and rethrows where it throws. Statements run in the order in which they are
   * sent; those that do not wait for the one before travel with it, and after one that fails the next do nothing.
   * A connection lost during COMMIT is a CommitUnknownError.
   */
  readonly transaction: <T>(
    work: (tx: Queryable) => Promise<T>,
    options?: TransactionOptions,
  ) => Promise<T>
  /**
   * One connection outside of any transaction, with time-outs of its own (0 is none): for statements that refuse a
   * transaction, as CREATE INDEX CONCURRENTLY does. It is closed afterwards, so nothing of it stays.
   */
  readonly apart: <T>(
    work: (session: Queryable, pid: number) => Promise<T>,
    options: { readonly statementTimeoutMs: number; readonly lockTimeoutMs: number },
  ) => Promise<T>
  /** Major version of the server, 15 or newer. */
  readonly major: number
  /** Calls back with every SQL text sent, and what stands for its connection, until the returned function is called. */
  readonly observe: (listener: Observer) => () => void
  readonly stats: () => { readonly total: number; readonly idle: number; readonly waiting: number }
  /** Lets running statements end (for a bounded time), then closes every connection. */
  readonly close: () => Promise<void>
}

export type Observer = (text: string, connection: object) => void

const poolSizeDefault = 10
const closeTimeoutMs = 10_000
/** How much longer than the server's own time-out we wait for its answer, for a peer that went silent. */
const answerGraceMs = 30_000
const namedTextsMax = 256
/** Plans stay as they are: where they want workers, they get none. */
const withoutWorkers = sql`SELECT set_config('max_parallel_workers', '0', true)`
/** With so much to send, what was sent together goes out before its tick is over. */
const corkedBytesMax = 64 * 1024
/** Plans that a connection may hold (some for texts no longer hot) before it is replaced. */
const plansPerConnectionMax = 512

/** Connects, checks that the server and database fit (DatabaseSetupError says what does not), and gives the pool. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const statementTimeoutMs = options.statementTimeoutMs ?? limits.statementTimeoutMs
  const sessions = new Sessions(options, statementTimeoutMs)
  try {
    const major = await sessions.use((session) => checkServer(session))
    return database(sessions, major)
  } catch (error) {
    await sessions.close()
    throw error
  }
}

function database(sessions: Sessions, major: number): Database {
  return {
    query: (statement, options) => sessions.use((session) => session.query(statement, options)),
    // pg gives rows untyped; the caller states the shape that its SELECT list has.
    quick: <R extends Row>(statement: SqlStatement) => sessions.quick(statement) as Promise<R[]>,
    long: <R extends Row>(statement: SqlStatement) => sessions.long(statement) as Promise<R[]>,
    execute: (statement) => sessions.use((session) => session.execute(statement)),
    transaction: (work, options) =>
      sessions.use((session) => session.transaction(work, options ?? {})),
    apart: (work, options) => sessions.use((session) => session.apart(work, options)),
    major,
    observe: (listener) => sessions.observe(listener),
    stats: () => sessions.stats(),
    close: () => sessions.close(),
  }
}

/** The pool: hands out sessions, keeps broken ones from coming back, knows the prepared names. */
class Sessions {
  readonly names = preparedNames(namedTextsMax)
  readonly statementTimeoutMs: number
  readonly #pool: Pool
  readonly #pipelines: Pipelines
  readonly #world: World
  readonly #crowd: Crowd
  readonly #clients = new Set<Client>()
  readonly #plans = new WeakMap<PoolClient, Set<string>>()
  readonly #listeners = new Set<Observer>()
  #closing: Promise<void> | undefined

  constructor(options: DatabaseOptions, statementTimeoutMs: number) {
    this.statementTimeoutMs = statementTimeoutMs
    this.#world = options.world ?? realWorld
    this.#crowd = new Crowd(options.processors ?? availableParallelism())
    const settings = sessionSettings({ statementTimeoutMs, readOnly: options.readOnly })
    const config = clientConfig(options.connection)
    this.#pool = new Pool({
      ...config,
      pipeline: true,
      max: options.poolSize ?? poolSizeDefault,
      onConnect: async (client) => {
        assert(client instanceof Client, 'a pool makes clients')
        this.#clients.add(client)
        client.once('end', () => this.#clients.delete(client))
        // pg listens only while a client is idle; without this a server killed during a statement ends our process.
        client.on('error', () => undefined)
        await sendQuery(client, { text: settings, timeoutMs: connectTimeoutMs })
      },
    })
    this.#pipelines = new Pipelines({
      count: options.pipelines ?? 0,
      config,
      settings,
      answerMs:
        statementTimeoutMs === 0 ? Number.POSITIVE_INFINITY : statementTimeoutMs + answerGraceMs,
      plansMax: plansPerConnectionMax,
      world: this.#world,
      names: this.names,
      announce: (text, connection) => this.announce(text, connection),
      alone: (statement) => this.use((session) => session.query(statement)),
    })
    this.#pool.on('error', (error) => {
      options.log?.warn({ error: error.message }, 'a database connection was lost')
    })
  }

  async use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect()
    const plans = this.#plans.get(client) ?? new Set<string>()
    this.#plans.set(client, plans)
    const session = new Session(client, plans, this)
    try {
      return await work(session)
    } finally {
      client.release(session.broken || plans.size > plansPerConnectionMax)
    }
  }

  quick(statement: SqlStatement): Promise<Row[]> {
    this.#crowd.note(this.#world.ticks())
    return this.#pipelines.query(statement)
  }

  async long(statement: SqlStatement): Promise<Row[]> {
    const send = () => this.use((session) => session.query(statement))
    if (!this.#crowd.isThere(this.#world.ticks())) return send()
    const sendWithoutWorkers = () =>
      this.use((session) =>
        session.transaction(async (tx) => {
          const [, rows] = await Promise.all([tx.query(withoutWorkers), tx.query(statement)])
          return rows
        }, {}),
      )
    try {
      return await sendWithoutWorkers()
    } catch (error) {
      // As in `query`: it was refused before it ran.
      if (isStalePlan(error)) return sendWithoutWorkers()
      throw error
    }
  }

  announce(text: string, connection: object): void {
    for (const listener of this.#listeners) listener(text, connection)
  }

  observe(listener: Observer): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  stats() {
    const lines = this.#pipelines.stats()
    return {
      total: this.#pool.totalCount + lines.total,
      idle: this.#pool.idleCount + lines.idle,
      waiting: this.#pool.waitingCount,
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const stopCutting = this.#world.every(closeTimeoutMs, () => {
      for (const client of this.#clients) client.connection.stream.destroy()
      this.#pipelines.cut()
    })
    await Promise.all([this.#pipelines.close(), this.#pool.end()])
    stopCutting()
  }
}

/** One connection while it is checked out. */
class Session {
  /** True once the connection must not be used again. */
  broken = false
  readonly #client: PoolClient
  readonly #plans: Set<string>
  readonly #sessions: Sessions
  /**
   * Goes out with the first statement of a transaction: a way there and back less. Until that is answered, each later
   * one is done only where BEGIN was.
   */
  #opening: Opening | undefined
  #isCorked = false

  constructor(client: PoolClient, plans: Set<string>, sessions: Sessions) {
    this.#client = client
    this.#plans = plans
    this.#sessions = sessions
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
