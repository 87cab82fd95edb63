import type { Socket } from 'node:net'
import { Client, type ClientConfig, DatabaseError } from 'pg'
import type { World } from '../base/world.ts'
import { connectTimeoutMs } from './connection.ts'
import { endsSession, isStalePlan } from './errors.ts'
import type { PreparedNames } from './prepared.ts'
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
    // Always in one order: the first stay busy, which is what makes them quick.
    for (const line of this.#lines) {
      const link = line.linkForOneMore()
      if (link !== undefined) return line.query(statement, link)
    }
    return this.#options.alone(statement)
  }

  /** Connections, and those without a read. */
  stats(): { readonly total: number; readonly idle: number } {
    const open = this.#lines.filter((line) => line.isOpen)
    return { total: open.length, idle: open.filter((line) => line.isIdle).length }
  }

  /** Lets reads under way end. */
  async close(): Promise<void> {
    await Promise.all(this.#lines.map((line) => line.close()))
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
  /** Connections that were asked for it and have not failed. */
  open: number
  isElsewhere: boolean
  /** What went wrong elsewhere, where nobody else could have a part in it. */
  error: unknown
}

/** One connection, which is made when it is first wanted and replaced when it is lost. */
class Line {
  readonly #options: PipelineOptions
  #link: Link | undefined
  #connecting: Promise<void> | undefined
  #retryAt = Number.NEGATIVE_INFINITY
  /** The ends of the connections before. */
  #left: Promise<unknown> = Promise.resolve()
  /** The oldest first. */
  readonly #reads: Read[] = []
  /** When the oldest became the oldest. */
  #headSince = 0
  /** Of what one read takes. */
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
      if (this.#reads.length === 0) this.#headSince = this.#options.world.ticks()
      this.#reads.push(read)
      this.#stopLooking ??= this.#options.world.every(lookMs, () => this.#look())
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
      // Whoever reads meanwhile does so elsewhere, and is told there what is wrong.
      this.#retryAt = world.ticks() + retryMs
      await client.end()
    } finally {
      this.#connecting = undefined
    }
  }

  #send({ text, values }: SqlStatement, { client, socket, plans }: Link) {
    const { names, announce } = this.#options
    const name = names.nameOf(text)
    if (name !== undefined) plans.add(name)
    announce(text, client)
    // What is asked for in one turn of the event loop goes out together.
    socket.cork()
    setImmediate(() => socket.uncork())
    return sendQuery(client, { text, values, name })
  }

  #answered(read: Read): void {
    const now = this.#options.world.ticks()
    const tookMs = Math.min(now - this.#headSince, this.#meanMs * meanTimes + meanMoreMs)
    this.#meanMs += (tookMs - this.#meanMs) * meanWeight
    this.#headSince = now
    this.#isStuck = false
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
    this.#isStuck = head !== undefined && head === this.#seenHead
    this.#seenHead = head
    if (this.#isStuck && !this.#isClosed) for (const read of behind) this.#readElsewhere(read)
    if (head !== undefined) return
    this.#stopLooking?.()
    this.#stopLooking = undefined
  }

  /** Ends the connection after what is under way; the next read that comes has another one made. */
  #leave(link: Link): void {
    if (this.#link !== link) return
    this.#link = undefined
    this.#meanMs = 0
    this.#left = Promise.all([this.#left, link.client.end()])
  }
}

/** A statement whose preparation failed for another read, or was made twice because of that. */
function isNameLost(error: unknown): boolean {
  return error instanceof DatabaseError && (error.code === '26000' || error.code === '42P05')
}
