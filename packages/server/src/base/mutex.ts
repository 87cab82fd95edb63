/** Runs one piece of work at a time, in the order of arrival. */
export class Gate {
  private last: Promise<unknown> = Promise.resolve()

  run<T>(work: () => Promise<T>): Promise<T> {
    const next = this.last.then(work, work)
    this.last = next.catch(() => undefined)
    return next
  }
}
