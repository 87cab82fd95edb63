import { SetupError } from '../../base/setup-error.ts'

/** Bytes that wait for others at most: chunks of bundles that are not whole, and bundles that come too early. */
const heldBytesMax = 256 * 1024 * 1024

/**
 * Counts what is kept while a log is recovered. Strangers can send what keeps waiting; nobody's memory is to pay for
 * it.
 */
export class HeldBytes {
  readonly #max: number
  #bytes = 0

  constructor(max: number = heldBytesMax) {
    this.#max = max
  }

  /** Throws a SetupError where more would be kept than is allowed: what is left out might be the log's own. */
  take(bytes: number): void {
    this.#bytes += bytes
    if (this.#bytes > this.#max)
      throw new SetupError(
        `more than ${this.#max} bytes that were sent for this log wait for others; read what one sender sent, with --sender`,
      )
  }

  give(bytes: number): void {
    this.#bytes -= bytes
  }
}
