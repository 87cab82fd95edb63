/** An event at a simulated time. */
type Event = { readonly at: number; readonly order: number; readonly run: () => void }

/** No run has more events; a run that reaches this number does not end. */
const eventsMax = 400_000

/**
 * Simulated time. All that code under test waits for (a statement, an answer from outside, a timer) is an event
 * with a time; the next event starts only when everything that the last one caused has come to rest. So one thing
 * happens at a time, in an order that follows from the seed alone.
 */
export class Scheduler {
  readonly trace: string[] = []
  #now: number
  #order = 0
  #events: Event[] = []
  #busy = 0
  #whenIdle: () => void = () => undefined

  constructor(startMs: number) {
    this.#now = startMs
  }

  /** Milliseconds since 1970. */
  get now(): number {
    return this.#now
  }

  /** Runs this after that many milliseconds, unless the returned function is called before. */
  after(ms: number, run: () => void): () => void {
    this.#order += 1
    const event = { at: this.#now + Math.ceil(ms), order: this.#order, run }
    let low = 0
    let high = this.#events.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#events[middle]?.at ?? 0) <= event.at) low = middle + 1
      else high = middle
    }
    this.#events.splice(low, 0, event)
    return () => {
      const place = this.#events.indexOf(event)
      if (place >= 0) this.#events.splice(place, 1)
    }
  }

  /** Lets so much time pass in which nothing happens; what was to happen then happens after it. */
  leap(ms: number): void {
    this.#now += ms
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.after(ms, resolve))
  }

  note(text: string): void {
    this.trace.push(`${this.#now} ${text}`)
  }

  /**
   * Marks the beginning of work outside of the simulation (the database): time stands still until the returned
   * function is called.
   */
  hold(): () => void {
    this.#busy += 1
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      this.#busy -= 1
      if (this.#busy === 0) this.#whenIdle()
    }
  }

  async held<T>(work: () => Promise<T>): Promise<T> {
    const release = this.hold()
    try {
      return await work()
    } finally {
      release()
    }
  }

  /** Runs events until this is true. */
  async run(until: () => boolean): Promise<void> {
    await this.#rest()
    for (let count = 0; !until(); count++) {
      const event = this.#events.shift()
      if (event === undefined) throw new Error('nothing is left that could happen')
      if (count === eventsMax) throw new Error(`the run has not ended after ${eventsMax} events`)
      this.#now = Math.max(this.#now, event.at)
      event.run()
      await this.#rest()
    }
  }

  /** Resolves once nothing runs: code under test waits only for events, and for what is held. */
  async #rest(): Promise<void> {
    do {
      if (this.#busy > 0) {
        await new Promise<void>((resolve) => {
          this.#whenIdle = resolve
        })
      }
      // This is after all promise callbacks, and those that they made.
      await new Promise((resolve) => setImmediate(resolve))
    } while (this.#busy > 0)
  }
}
