import type { Turn } from '../../base/semaphore.ts'
import type { World } from '../../base/world.ts'

export type ShortReadsOptions = {
  readonly world: World
  /** A read that takes longer is slow; the database stops it then. */
  readonly boundMs: number
  /** The time after a slow read for which its reader counts as slow. */
  readonly slowForMs: number
  /** Reads of one reader at once. */
  readonly atOnceMax: number
}

export type ShortRead = {
  readonly turn: Turn
  /** The statement without its values. */
  readonly text: string
}

type Reader = {
  atOnce: number
  readonly waiting: (() => void)[]
  /** Until then only texts that were short meanwhile are attempted. */
  slowUntil: number
  readonly shortTexts: Set<string>
}

/** The limit for one slow reader. */
const shortTextsMax = 64
const readersMax = 1_000

/**
 * A list's text does not tell whether the list is short: that depends on the records and the indexes. So each list
 * is attempted for a short time. After a slow one its reader is not trusted for a while, except for texts that have
 * been short since: otherwise attempts alone could hold all connections. All keys of an application count as one
 * reader.
 */
export class ShortReads {
  readonly #options: ShortReadsOptions
  readonly #readers = new Map<string, Reader>()

  constructor(options: ShortReadsOptions) {
    this.#options = options
  }

  /** Returns the outcome of a short read; undefined where it is slow, or its reader is not trusted. */
  async attempt<T>(read: ShortRead, run: () => Promise<T>): Promise<T | undefined> {
    const reader = this.#getReader(read.turn)
    if (reader.atOnce >= this.#options.atOnceMax)
      await new Promise<void>((resolve) => reader.waiting.push(resolve))
    else reader.atOnce += 1
    try {
      if (this.#isSlow(reader) && !reader.shortTexts.has(read.text)) return undefined
      return await run()
    } catch (error) {
      if (!isStopped(error)) throw error
      this.#noteSlow(reader, read)
      return undefined
    } finally {
      // A waiting read takes the place over.
      const next = reader.waiting.shift()
      if (next === undefined) reader.atOnce -= 1
      else next()
    }
  }

  /** Runs a read that was not attempted, or was stopped, and remembers whether it is short. */
  async learn<T>(read: ShortRead, run: () => Promise<T>): Promise<T> {
    const { world, boundMs } = this.#options
    const startedAt = world.ticks()
    const outcome = await run()
    const reader = this.#getReader(read.turn)
    if (world.ticks() - startedAt > boundMs) this.#noteSlow(reader, read)
    else if (reader.shortTexts.size < shortTextsMax) reader.shortTexts.add(read.text)
    return outcome
  }

  #noteSlow(reader: Reader, { text }: ShortRead): void {
    reader.shortTexts.delete(text)
    reader.slowUntil = this.#options.world.ticks() + this.#options.slowForMs
  }

  #isSlow(reader: Reader): boolean {
    return this.#options.world.ticks() < reader.slowUntil
  }

  #getReader({ application, caller, rank }: Turn): Reader {
    const name = rank === 'key' ? application : `${application} ${caller} ${rank}`
    const known = this.#readers.get(name)
    if (known !== undefined && (known.atOnce > 0 || this.#isSlow(known))) return known
    if (this.#readers.size >= readersMax) this.#forget()
    const made = {
      atOnce: 0,
      waiting: [],
      slowUntil: Number.NEGATIVE_INFINITY,
      shortTexts: new Set<string>(),
    }
    this.#readers.set(name, made)
    return made
  }

  /** Forgets readers that have no read under way and are not slow. */
  #forget(): void {
    for (const [name, reader] of this.#readers)
      if (reader.atOnce === 0 && !this.#isSlow(reader)) this.#readers.delete(name)
  }
}

/** The database's word for a statement whose time ran out (query_canceled). */
function isStopped(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014'
}
