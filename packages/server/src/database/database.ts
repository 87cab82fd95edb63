import { Socket } from 'node:net'
import { type ClientBase, Pool } from 'pg'
import { assert } from '../base/assert.ts'
import { realWorld, type World } from '../base/world.ts'
import { checkServer } from './check-server.ts'
import { connectTimeoutMs, type DatabaseOptions, makeClientConfig } from './connection.ts'
import { isStalePlan } from './errors.ts'
import { LoadMeter } from './load-meter.ts'
import { Pipelines } from './pipelines.ts'
import { makePreparedNames, type PreparedNames } from './prepared-names.ts'
import type { Queryable, TransactionOptions } from './queryable.ts'
import { runCancellable } from './run-cancellable.ts'
import { type Row, sendQuery } from './send-query.ts'
import { answerMs, type Known, Session } from './session.ts'
import { formatSessionSettings } from './session-settings.ts'
import { type SqlStatement, sql } from './sql.ts'

export type { Queryable } from './queryable.ts'

export type Database = Queryable & {
  /**
   * A read that ought to be short: where there are pipelines, it goes over a connection that others use meanwhile.
   * One that is not over after `statementTimeoutMs` is cancelled (SQLSTATE 57014).
   */
  readonly queryShort: <R extends Row = Row>(
    statement: SqlStatement,
    options?: ShortReadOptions,
  ) => Promise<R[]>
  /**
   * A read that may take long: where many quick ones come in, it takes but one processor. After `longTimeoutMs`, or
   * when the signal is aborted, it is cancelled (SQLSTATE 57014).
   */
  readonly queryHeavy: <R extends Row = Row>(
    statement: SqlStatement,
    options?: { readonly signal?: AbortSignal | undefined },
  ) => Promise<R[]>
  /**
   * Runs `work` and commits; rolls back and rethrows where it throws. Statements run in the order in which they are
   * sent; those that do not wait for the one before travel with it, and after a failed one the next do nothing. A
   * connection lost during COMMIT is a CommitUnknownError.
   */
  readonly transaction: <T>(
    work: (tx: Queryable) => Promise<T>,
    options?: TransactionOptions,
  ) => Promise<T>
  /**
   * Uses one connection outside of any transaction, with time-outs of its own (0 is none): for statements that
   * refuse a transaction, as CREATE INDEX CONCURRENTLY does. It is closed afterwards, so nothing of it stays.
   */
  readonly useDedicatedSession: <T>(
    work: (session: Queryable, pid: number) => Promise<T>,
    options: { readonly statementTimeoutMs: number; readonly lockTimeoutMs: number },
  ) => Promise<T>
  /** Major version of the server, 15 or newer. */
  readonly major: number
  /**
   * Calls back with every SQL text sent and an object that stands for its connection, until the returned function
   * is called.
   */
  readonly observe: (listener: Observer) => () => void
  readonly stats: () => { readonly total: number; readonly idle: number; readonly waiting: number }
  /** Lets running statements end (for a bounded time), then closes every connection. */
  readonly close: () => Promise<void>
}

export type ShortReadOptions = {
  /** True for a statement whose best plan is the same for all values: it is planned once. */
  readonly keepsPlan?: boolean
}

export type Observer = (text: string, connection: object) => void

const poolSizeDefault = 10
/** The time that one statement may take, such as that of a block. */
const statementTimeoutMsDefault = 15_000
const closeTimeoutMs = 10_000
const namedTextsMax = 256
/** Plans that a connection may hold (some for texts no longer in use) before it is replaced. */
const plansPerConnectionMax = 512

/** Connects, checks that server and database fit (DatabaseSetupError says what does not), and returns the pool. */
export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const sessions = new Sessions(options)
  try {
    const major = await sessions.patiently(undefined, checkServer)
    return makeDatabase(sessions, major)
  } catch (error) {
    await sessions.close()
    throw error
  }
}

function makeDatabase(sessions: Sessions, major: number): Database {
  return {
    query: (statement, options) => sessions.use((session) => session.query(statement, options)),
    // pg gives rows untyped; the caller states the shape that its SELECT list has.
    queryShort: <R extends Row>(statement: SqlStatement, options?: ShortReadOptions) =>
      sessions.queryShort(statement, options) as Promise<R[]>,
    queryHeavy: <R extends Row>(
      statement: SqlStatement,
      options?: { signal?: AbortSignal | undefined },
    ) => sessions.queryHeavy(statement, options?.signal) as Promise<R[]>,
    execute: (statement) => sessions.use((session) => session.execute(statement)),
    transaction: (work, options) => sessions.transaction(work, options ?? {}),
    useDedicatedSession: (work, options) =>
      sessions.use((session) => session.runDedicated(work, options)),
    major,
    observe: (listener) => sessions.observe(listener),
    stats: () => sessions.stats(),
    close: () => sessions.close(),
  }
}

/** The pool: hands out sessions, keeps broken ones from coming back, knows the prepared names. */
class Sessions {
  readonly names: PreparedNames
  readonly statementTimeoutMs: number
  readonly #longTimeoutMs: number
  readonly #pool: Pool
  readonly #pipelines: Pipelines
  /** Those whose sessions plan a statement once. */
  readonly #planning: Pipelines
  readonly #world: World
  readonly #loadMeter = new LoadMeter()
  /** The sockets of all connections, to cut those that do not answer. */
  readonly #sockets = new Set<Socket>()
  readonly #known = new WeakMap<ClientBase, Known>()
  readonly #listeners = new Set<Observer>()
  #closing: Promise<void> | undefined

  constructor(options: DatabaseOptions) {
    this.names = options.preparedNames ?? makePreparedNames(namedTextsMax)
    this.statementTimeoutMs = options.statementTimeoutMs ?? statementTimeoutMsDefault
    this.#longTimeoutMs = options.longTimeoutMs ?? this.statementTimeoutMs
    this.#world = options.world ?? realWorld
    const { statementTimeoutMs } = this
    const { readOnly } = options
    const settings = formatSessionSettings({ statementTimeoutMs, readOnly })
    const config = makeClientConfig(options.connection)
    this.#pool = new Pool({
      ...config,
      stream: () => this.#openSocket(),
      max: options.poolSize ?? poolSizeDefault,
      onConnect: async (client) => {
        // pg listens only while a client is idle; without this a server killed during a statement ends our process.
        client.on('error', () => undefined)
        const sent = { text: settings, values: [], timeoutMs: connectTimeoutMs }
        const [row] = (await sendQuery(client, sent)).rows
        const pid = Number(row?.pid)
        this.#known.set(client, { pid, plans: new Set() })
        options.onConnection?.(pid)
      },
    })
    const lines = {
      config,
      openSocket: () => this.#openSocket(),
      answerMs: answerMs(statementTimeoutMs),
      plansMax: plansPerConnectionMax,
      world: this.#world,
      names: this.names,
      announce: (text: string, connection: object) => this.announce(text, connection),
      queryDedicated: (statement: SqlStatement) => this.use((session) => session.query(statement)),
    }
    const count = options.pipelines ?? 0
    this.#pipelines = new Pipelines({ ...lines, count, settings })
    this.#planning = new Pipelines({
      ...lines,
      count: Math.ceil(count / 2),
      settings: formatSessionSettings({ statementTimeoutMs, readOnly, keepPlans: true }),
    })
    this.#pool.on('error', (error) => {
      // The pool has ended before its sockets are closed, and the server may end first.
      if (this.#closing !== undefined) return
      options.log?.warn({ error: error.message }, 'a database connection was lost')
    })
  }

  async use<T>(work: (session: Session) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect()
    const known = this.#known.get(client)
    assert(known !== undefined, 'a connection is known before it is used')
    const session = new Session(client, known, this)
    try {
      return await work(session)
    } finally {
      client.release(session.broken || known.plans.size > plansPerConnectionMax)
    }
  }

  queryShort(statement: SqlStatement, options: ShortReadOptions = {}): Promise<Row[]> {
    this.#loadMeter.note(this.#world.ticks())
    const lines = options.keepsPlan === true ? this.#planning : this.#pipelines
    return lines.query(statement)
  }

  async queryHeavy(statement: SqlStatement, signal: AbortSignal | undefined): Promise<Row[]> {
    const read = () => this.patiently(signal, (tx) => tx.query(statement))
    try {
      return await read()
    } catch (error) {
      // Tries once more after a stale plan: the refused statement has not run.
      if (isStalePlan(error)) return read()
      throw error
    }
  }

  /** Reads with the time that a long read has; cancels what runs once the signal is aborted. */
  patiently<T>(signal: AbortSignal | undefined, work: (tx: Queryable) => Promise<T>): Promise<T> {
    const statementTimeoutMs = this.#longTimeoutMs
    const workers = this.#loadMeter.isHigh(this.#world.ticks()) ? 'none' : 'ready'
    return this.transaction(work, { statementTimeoutMs, workers, signal })
  }

  transaction<T>(work: (tx: Queryable) => Promise<T>, options: TransactionOptions): Promise<T> {
    const { signal } = options
    return this.use((session) => {
      const run = () => session.transaction(work, options)
      if (signal === undefined) return run()
      const cancel = () =>
        this.queryShort(sql`SELECT pg_catalog.pg_cancel_backend(${session.pid}::int4)`)
      return runCancellable({ signal, cancel, world: this.#world }, run)
    })
  }

  #openSocket(): Socket {
    const socket = new Socket()
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }

  announce(text: string, connection: object): void {
    for (const listener of this.#listeners) listener(text, connection)
  }

  observe(listener: Observer): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  stats() {
    const [lines, planning] = [this.#pipelines.stats(), this.#planning.stats()]
    return {
      total: this.#pool.totalCount + lines.total + planning.total,
      idle: this.#pool.idleCount + lines.idle + planning.idle,
      waiting: this.#pool.waitingCount,
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const stopCutting = this.#world.every(closeTimeoutMs, () => {
      for (const socket of this.#sockets) socket.destroy()
    })
    await Promise.all([this.#pipelines.close(), this.#planning.close(), this.#pool.end()])
    stopCutting()
  }
}
