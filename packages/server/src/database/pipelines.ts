import { Client, type ClientConfig, DatabaseError } from 'pg'
import type { World } from '../base/world.ts'
import { connectTimeoutMs } from './connection.ts'
import { endsSession, isStalePlan } from './errors.ts'
import type { PreparedNames } from './prepared-names.ts'
import { readPrepared } from './prepared-read.ts'
import { type Row, sendQuery } from './send-query.ts'
import type { SqlStatement } from './sql.ts'

export type PipelineOptions = {
  readonly count: number
  readonly config: ClientConfig
  /** The statement that every connection begins with. */
  readonly settings: string
  /** When a connection that does not answer is given up. */
  readonly answerMs: number
  /** Plans that a connection may hold before it is replaced. */
  readonly plansMax: number
  readonly world: World
  readonly names: PreparedNames
  readonly announce: (text: string, connection: object) => void
  /** Reads by a connection that nobody else has meanwhile. */
  readonly alone: (statement: SqlStatement) => Promise<Row[]>
}

/** Reads under way on one connection at most. */
const depthMax = 16
/** A read joins others where it should not wait longer for them. */
const waitMsMax = 5
/** How often a connection is looked at; who is behind the same read twice is asked for again, elsewhere. */
const lookMs = 3
/** After a connection that could not be made, how long no other is tried. */
const retryMs = 1_000
/** How much the newest read counts in the mean of what reads take. */
const meanWeight = 1 / 8
/** A read counts for no more than so many means and this: one that was late says little of the next. */
const meanTimes = 8
const meanMoreMs = 1

/**
 * A few connections on which many short reads are under way at once: a server process that always has a next one
 * never goes to sleep, and several go over the socket together, so a read costs both sides half of what it does on a
 * connection of its own. Answers come in order, so a read that takes long holds those behind it up; therefore reads
 * join only what is quick, and what waits nevertheless is read elsewhere as well. Writes have no place here.
 */
export class Pipelines {
  readonly #lines: readonly Line[]
  readonly #options: PipelineOptions

  constructor(options: PipelineOptions) {
    this.#options = options
    this.#lines = Array.from({ length: options.count }, () => new Line(options))
  }

  query(statement: SqlStatement): Promise<Row[]> {
    const { world, alone } = this.#options
    const now = world.ticks()
    // Always in one order: the first stay busy, which is what makes them quick.
    for (const line of this.#lines) if (line.accepts(now)) return line.query(statement)
    return alone(statement)
  }

  /** Connections, and those without a read. */
  stats(): { readonly total: number; readonly idle: number } {
    const open = this.#lines.filter((line) => line.isOpen)
    return { total: open.length, idle: open.filter((line) => line.depth === 0).length }
  }

  /** Lets reads under way end. */
  async close(): Promise<void> {
    await Promise.all(this.#lines.map((line) => line.close()))
  }

  /** Ends every connection at once. */
  cut(): void {
    for (const line of this.#lines) line.cut()
  }
}

type Read = {
  readonly statement: SqlStatement
  readonly resolve: (rows: Row[]) => void
  readonly reject: (error: unknown) => void
  /** Connections that were asked for it and have not failed. */
  open: number
  isElsewhere: boolean
  /** What went wrong elsewhere, where nobody else could have a part in it. */
  error: unknown
}

/** One connection. */
class Line {
  readonly #options: PipelineOptions
  /** All that have not ended: the one in use, or being made, and those that are left. */
  readonly #clients = new Set<Client>()
  #client: Client | undefined
  #connecting: Promise<void> | undefined
  #retryAt = Number.NEGATIVE_INFINITY
  #plans = new Set<string>()
  /** The oldest first. */
  #reads: Read[] = []
  /** When the oldest became the oldest. */
  #headSince = 0
  /** Of what one read takes. */
  #meanMs = 0
  #seenHead: Read | undefined
  #stopLooking: (() => void) | undefined
  #isCorked = false
  #isClosed = false

  constructor(options: PipelineOptions) {
    this.#options = options
  }

  get isOpen(): boolean {
    return this.#client !== undefined
  }

  get depth(): number {
    return this.#reads.length
  }

  /** Whether a read sent now is expected to be answered soon. Without a connection it makes one for later. */
  accepts(now: number): boolean {
    if (this.#isClosed) return false
    if (this.#client === undefined) {
      if (now >= this.#retryAt) this.#connecting ??= this.#connect()
      return false
    }
    const { length } = this.#reads
    if (this.#plans.size > this.#options.plansMax) {
      if (length === 0) this.#leave()
      return false
    }
    if (length === 0) return true
    const isQuick = length * this.#meanMs < waitMsMax && now - this.#headSince < waitMsMax
    return length < depthMax && isQuick
  }

  query(statement: SqlStatement): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      const client = this.#client
      if (client === undefined) throw new Error('a line was used without a connection')
      const read: Read = {
        statement,
        resolve,
        reject,
        open: 1,
        isElsewhere: false,
        error: undefined,
      }
      if (this.#reads.length === 0) this.#headSince = this.#options.world.ticks()
      this.#reads.push(read)
      this.#stopLooking ??= this.#options.world.every(lookMs, () => this.#look())
      this.#send(client, statement).then(
        (rows) => {
          this.#answered(read)
          resolve(rows)
        },
        (error) => {
          this.#answered(read)
          if (endsSession(error)) this.#lost(client)
          this.#failed(read, error)
        },
      )
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#connecting
    this.#leave()
    await Promise.all([...this.#clients].map((client) => client.end()))
    this.#stopLooking?.()
  }

  cut(): void {
    for (const client of this.#clients) client.connection.stream.destroy()
  }

  async #connect(): Promise<void> {
    const client = new Client({ ...this.#options.config, pipeline: true })
    this.#clients.add(client)
    client.on('error', () => this.#lost(client))
    client.on('end', () => {
      this.#clients.delete(client)
      this.#lost(client)
    })
    try {
      await client.connect()
      await sendQuery(client, { text: this.#options.settings, timeoutMs: connectTimeoutMs })
      this.#client = client
    } catch {
      // Whoever reads meanwhile does so elsewhere, and is told there what is wrong.
      this.#retryAt = this.#options.world.ticks() + retryMs
      await client.end()
    } finally {
      this.#connecting = undefined
    }
  }

  #send(client: Client, statement: SqlStatement): Promise<Row[]> {
    const { names, announce } = this.#options
    const { text, values } = statement
    const name = names.nameOf(text)
    if (name !== undefined) this.#plans.add(name)
    announce(text, client)
    this.#cork(client)
    if (name !== undefined) return readPrepared(client, { text, values, name })
    return sendQuery(client, { text, values, timeoutMs: 0 }).then(({ rows }) => rows)
  }

  /** What is asked for in one turn of the event loop goes out together. */
  #cork(client: Client): void {
    if (this.#isCorked) return
    this.#isCorked = true
    const { stream } = client.connection
    stream.cork()
    setImmediate(() => {
      this.#isCorked = false
      stream.uncork()
    })
  }

  #answered(read: Read): void {
    const now = this.#options.world.ticks()
    const tookMs = Math.min(now - this.#headSince, this.#meanMs * meanTimes + meanMoreMs)
    this.#meanMs += (tookMs - this.#meanMs) * meanWeight
    this.#headSince = now
    this.#reads.splice(this.#reads.indexOf(read), 1)
  }

  #failed(read: Read, error: unknown): void {
    const isStale = isStalePlan(error)
    if (isStale) this.#options.names.forget(read.statement.text)
    // It was refused before it ran, or nobody knows: a read may run twice.
    if (isStale || isNameLost(error) || endsSession(error)) this.#readElsewhere(read)
    read.open -= 1
    if (read.open === 0) read.reject(read.error ?? error)
  }

  /** Its first answer counts, and a lost connection is one only where no other will come. */
  #readElsewhere(read: Read): void {
    if (read.isElsewhere) return
    read.isElsewhere = true
    read.open += 1
    this.#options.alone(read.statement).then(read.resolve, (error) => {
      read.open -= 1
      read.error = error
      if (read.open === 0 || !endsSession(error)) read.reject(error)
    })
  }

  #look(): void {
    const [head, ...behind] = this.#reads
    if (head === undefined) {
      this.#stopLooking?.()
      this.#stopLooking = undefined
    } else if (head === this.#seenHead) {
      for (const read of this.#isClosed ? [] : behind) this.#readElsewhere(read)
      if (this.#options.world.ticks() - this.#headSince > this.#options.answerMs) this.cut()
    }
    this.#seenHead = head
  }

  #lost(client: Client): void {
    if (this.#client === client) this.#leave()
  }

  /** Ends the connection after what is under way; the next read that comes has another one made. */
  #leave(): void {
    const client = this.#client
    this.#client = undefined
    this.#plans = new Set()
    this.#meanMs = 0
    void client?.end()
  }
}

/** A statement whose preparation failed for another read, or was made twice because of that. */
function isNameLost(error: unknown): boolean {
  return error instanceof DatabaseError && (error.code === '26000' || error.code === '42P05')
}
