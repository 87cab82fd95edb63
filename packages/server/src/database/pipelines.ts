import type { Socket } from 'node:net'
import { Client, type ClientConfig, DatabaseError } from 'pg'
import type { World } from '../base/world.ts'
import { connectTimeoutMs } from './connection.ts'
import { endsSession, isStalePlan } from './errors.ts'
import type { PreparedNames } from './prepared-names.ts'
import { type Row, sendQuery } from './send-query.ts'
import type { SqlStatement } from './sql.ts'

export type PipelineOptions = {
  readonly count: number
  readonly config: ClientConfig
  readonly openSocket: () => Socket
  /** The statement that every connection begins with. */
  readonly settings: string
  /** When a connection that does not answer is given up; 0 is never. */
  readonly answerMs: number
  /** Plans that a connection may hold before it is replaced. */
  readonly plansMax: number
  readonly world: World
  readonly names: PreparedNames
  readonly announce: (text: string, connection: object) => void
  /** Reads over a pooled connection that nobody else uses meanwhile. */
  readonly queryDedicated: (statement: SqlStatement) => Promise<Row[]>
}

/** Reads under way on one connection. */
const depthMax = 16
/** Longest wait behind other reads for which a read joins them. */
const waitMsMax = 5
/** Interval of the checks on a connection; reads behind the same head in two checks are repeated on another one. */
const lookMs = 3
/**
 * The head must also have taken so many times what reads take. Without that, reads of a few milliseconds on a busy
 * machine are repeated for nothing, which makes it busier.
 */
const stuckMeans = 4
/** Pause after a connection could not be made. */
const retryMs = 1_000
/** Weight of the newest read in the mean duration of reads. */
const meanWeight = 1 / 8
/**
 * A read's time counts at most as this many means, plus `meanMoreMs`: one slow read says little about the next one.
 */
const meanTimes = 8
const meanMoreMs = 1

/**
 * A few connections, each of which carries many short reads at once. A server process that always has a next read never
 * goes to sleep, and several reads travel over the socket together. So a read costs both sides half of what it costs on
 * a connection of its own. Answers come in order, so a slow read delays those behind it. Therefore a read joins only
 * short ones, and a read that still waits is repeated on another connection. Writes must not use these connections.
 */
export class Pipelines {
  readonly #connections: readonly PipelinedConnection[]
  readonly #options: PipelineOptions

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#connections = Array.from(
      { length: options.count },
      () => new PipelinedConnection(options),
    )
  }

  query(statement: SqlStatement): Promise<Row[]> {
    // The order is fixed: the first connections stay busy, which makes them fast.
    for (const line of this.#connections) {
      const link = line.linkForOneMore()
      if (link !== undefined) return line.query(statement, link)
    }
    return this.#options.queryDedicated(statement)
  }

  /** Numbers of open connections and of those without a read. */
  stats(): { readonly total: number; readonly idle: number } {
    const open = this.#connections.filter((line) => line.isOpen)
    return { total: open.length, idle: open.filter((line) => line.isIdle).length }
  }

  /** Lets reads under way end. */
  async close(): Promise<void> {
    await Promise.all(this.#connections.map((line) => line.close()))
  }
}

type Link = {
  readonly client: Client
  readonly socket: Socket
  readonly plans: Set<string>
}

type Read = {
  readonly statement: SqlStatement
  readonly resolve: (rows: Row[]) => void
  readonly reject: (error: unknown) => void
  /** Number of connections that have been asked and have not failed. */
  open: number
  isElsewhere: boolean
  /**
   * The error from the other connection, which served this read alone, so no other read can have caused it.
   */
  error: unknown
}

/** One connection, which is made when it is first wanted and replaced when it is lost. */
class PipelinedConnection {
  readonly #options: PipelineOptions
  #link: Link | undefined
  #connecting: Promise<void> | undefined
  #retryAt = Number.NEGATIVE_INFINITY
  /** The ends of the connections before. */
  #left: Promise<unknown> = Promise.resolve()
  /** Reads under way, the oldest first. */
  readonly #reads: Read[] = []
  /** The time that we had waited for others when the oldest read became the oldest. */
  #headSince = 0
  /** Mean time that we waited for one read: while we work, its answer may have come long ago. */
  #meanMs = 0
  #seenHead: Read | undefined
  #isStuck = false
  #stopLooking: (() => void) | undefined
  #isClosed = false

  constructor(options: PipelineOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#link !== undefined
  }

  get isIdle(): boolean {
    return this.#reads.length === 0
  }

  /** The connection, where a read sent now is expected to be answered soon. Where there is none, one is made for later. */
  linkForOneMore(): Link | undefined {
    if (this.#isClosed) return undefined
    const link = this.#link
    if (link === undefined) {
      if (this.#options.world.ticks() >= this.#retryAt) this.#connecting ??= this.#connect()
      return undefined
    }
    const { length } = this.#reads
    if (link.plans.size > this.#options.plansMax) {
      if (length === 0) this.#leave(link)
      return undefined
    }
    if (length === 0) return link
    const isQuick = !this.#isStuck && length * this.#meanMs < waitMsMax
    return length < depthMax && isQuick ? link : undefined
  }

  query(statement: SqlStatement, link: Link): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      const read: Read = {
        statement,
        resolve,
        reject,
        open: 1,
        isElsewhere: false,
        error: undefined,
      }
      if (this.#reads.length === 0) this.#headSince = this.#options.world.idle()
      this.#reads.push(read)
      // After the answers that have come meanwhile are read.
      this.#stopLooking ??= this.#options.world.every(lookMs, () =>
        setImmediate(() => this.#look()),
      )
      this.#send(statement, link).then(
        ({ rows }) => {
          this.#answered(read)
          resolve(rows)
        },
        (error) => {
          this.#answered(read)
          if (endsSession(error)) this.#leave(link)
          this.#failed(read, error)
        },
      )
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#connecting
    if (this.#link !== undefined) this.#leave(this.#link)
    await this.#left
    this.#stopLooking?.()
  }

  async #connect(): Promise<void> {
    const { config, answerMs, openSocket, settings, world } = this.#options
    const socket = openSocket()
    const client = new Client({ ...config, query_timeout: answerMs, stream: () => socket })
    const link: Link = { client, socket, plans: new Set() }
    client.on('error', () => this.#leave(link))
    client.on('end', () => this.#leave(link))
    try {
      await client.connect()
      await sendQuery(client, { text: settings, values: [], timeoutMs: connectTimeoutMs })
      this.#link = link
    } catch {
      // Reads meanwhile go elsewhere and get the error there.
      this.#retryAt = world.ticks() + retryMs
      await client.end()
    } finally {
      this.#connecting = undefined
    }
  }

  #send({ text, values }: SqlStatement, { client, socket, plans }: Link) {
    const { names, announce } = this.#options
    const name = names.findName(text)
    if (name !== undefined) plans.add(name)
    announce(text, client)
    // Sends all reads of one turn of the event loop together.
    socket.cork()
    setImmediate(() => socket.uncork())
    return sendQuery(client, { text, values, name })
  }

  #answered(read: Read): void {
    const now = this.#options.world.idle()
    const tookMs = Math.min(now - this.#headSince, this.#meanMs * meanTimes + meanMoreMs)
    this.#meanMs += (tookMs - this.#meanMs) * meanWeight
    this.#headSince = now
    this.#isStuck = false
    this.#reads.splice(this.#reads.indexOf(read), 1)
  }

  #failed(read: Read, error: unknown): void {
    const isStale = isStalePlan(error)
    if (isStale) this.#options.names.forget(read.statement.text)
    // The read was refused before it ran, or its fate is unknown: a read may run twice.
    if (isStale || isNameLost(error) || endsSession(error)) this.#readElsewhere(read)
    read.open -= 1
    if (read.open === 0) read.reject(read.error ?? error)
  }

  /**
   * Repeats the read on another connection. The first answer counts, and a lost connection is an error only where
   * no other answer can come.
   */
  #readElsewhere(read: Read): void {
    if (read.isElsewhere) return
    read.isElsewhere = true
    read.open += 1
    this.#options.queryDedicated(read.statement).then(read.resolve, (error) => {
      read.open -= 1
      read.error = error
      if (read.open === 0 || !endsSession(error)) read.reject(error)
    })
  }

  #look(): void {
    const [head, ...behind] = this.#reads
    const headMs = this.#options.world.idle() - this.#headSince
    this.#isStuck =
      head !== undefined && head === this.#seenHead && headMs >= stuckMeans * this.#meanMs
    this.#seenHead = head
    if (this.#isStuck && !this.#isClosed) for (const read of behind) this.#readElsewhere(read)
    if (head !== undefined) return
    this.#stopLooking?.()
    this.#stopLooking = undefined
  }

  /** Ends the connection after the reads under way; the next read starts another one. */
  #leave(link: Link): void {
    if (this.#link !== link) return
    this.#link = undefined
    this.#meanMs = 0
    this.#left = Promise.all([this.#left, link.client.end()])
  }
}

/** True where the preparation of a statement failed for another read, or was repeated because of that. */
function isNameLost(error: unknown): boolean {
  return error instanceof DatabaseError && (error.code === '26000' || error.code === '42P05')
}
