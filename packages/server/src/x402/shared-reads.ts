type Running<T> = { readonly run: Promise<T>; next?: Promise<T> }

/**
 * Shares reads of one thing among all who ask for it at once. Nobody gets a read that began before he asked: who comes
 * while one runs gets the next one, together with all others who come meanwhile. So each waits for two reads at most.
 */
export class SharedReads<T> {
  readonly #running = new Map<string, Running<T>>()

  run(key: string, read: () => Promise<T>): Promise<T> {
    const running = this.#running.get(key)
    if (running === undefined) return this.#start(key, read)
    running.next ??= running.run.catch(() => undefined).then(() => this.#start(key, read))
    return running.next
  }

  #start(key: string, read: () => Promise<T>): Promise<T> {
    const running: Running<T> = {
      run: read().finally(() => {
        if (running.next === undefined) this.#running.delete(key)
      }),
    }
    this.#running.set(key, running)
    return running.run
  }
}
