import type { Turn } from '../../base/semaphore.ts'
import type { World } from '../../base/world.ts'

export type QuickReadsOptions = {
  readonly world: World
  /** A read that takes longer is slow; the database stops it then. */
  readonly boundMs: number
  /** For how long after a slow read its reader is a slow one. */
  readonly slowForMs: number
  /** Reads of one reader at once. */
  readonly atOnceMax: number
}

export type QuickRead = {
  readonly turn: Turn
  /** The statement without its values. */
  readonly text: string
}

type Reader = {
  atOnce: number
  readonly waiting: (() => void)[]
  /** Until then only those of the texts are attempted that were quick meanwhile. */
  slowUntil: number
  readonly quickTexts: Set<string>
}

/** Of one slow reader. */
const quickTextsMax = 64
const readersMax = 1_000

/**
 * Nobody can tell by its text whether a list is quick: that is a matter of the records, and of the indexes. So each is
 * attempted for a short time. Whoever had a slow one is not believed any more for a while, except for what has been
 * quick since: else he could keep all connections by attempts alone. Of the keys of an application each counts as all.
 */
export class QuickReads {
  readonly #options: QuickReadsOptions
  readonly #readers = new Map<string, Reader>()

  constructor(options: QuickReadsOptions) {
    this.#options = options
  }

  /** The outcome of a quick read; undefined where it is none, or not believed to be one. */
  async attempt<T>(read: QuickRead, run: () => Promise<T>): Promise<T | undefined> {
    const reader = this.#readerOf(read.turn)
    if (reader.atOnce >= this.#options.atOnceMax)
      await new Promise<void>((resolve) => reader.waiting.push(resolve))
    else reader.atOnce += 1
    try {
      if (this.#isSlow(reader) && !reader.quickTexts.has(read.text)) return undefined
      return await run()
    } catch (error) {
      if (!isStopped(error)) throw error
      this.#noteSlow(reader, read)
      return undefined
    } finally {
      // Whoever waits takes the place over.
      const next = reader.waiting.shift()
      if (next === undefined) reader.atOnce -= 1
      else next()
    }
  }

  /** Runs a read that was not attempted, or stopped, and remembers whether it is quick. */
  async learn<T>(read: QuickRead, run: () => Promise<T>): Promise<T> {
    const { world, boundMs } = this.#options
    const startedAt = world.ticks()
    const outcome = await run()
    const reader = this.#readerOf(read.turn)
    if (world.ticks() - startedAt > boundMs) this.#noteSlow(reader, read)
    else if (reader.quickTexts.size < quickTextsMax) reader.quickTexts.add(read.text)
    return outcome
  }

  #noteSlow(reader: Reader, { text }: QuickRead): void {
    reader.quickTexts.delete(text)
    reader.slowUntil = this.#options.world.ticks() + this.#options.slowForMs
  }

  #isSlow(reader: Reader): boolean {
    return this.#options.world.ticks() < reader.slowUntil
  }

  #readerOf({ application, caller, rank }: Turn): Reader {
    const name = rank === 'key' ? application : `${application} ${caller} ${rank}`
    const known = this.#readers.get(name)
    if (known !== undefined && (known.atOnce > 0 || this.#isSlow(known))) return known
    if (this.#readers.size >= readersMax) this.#forget()
    const made = {
      atOnce: 0,
      waiting: [],
      slowUntil: Number.NEGATIVE_INFINITY,
      quickTexts: new Set<string>(),
    }
    this.#readers.set(name, made)
    return made
  }

  /** Of whom nothing is known any more. */
  #forget(): void {
    for (const [name, reader] of this.#readers)
      if (reader.atOnce === 0 && !this.#isSlow(reader)) this.#readers.delete(name)
  }
}

/** The database's word for a statement whose time ran out (query_canceled). */
function isStopped(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '57014'
}
