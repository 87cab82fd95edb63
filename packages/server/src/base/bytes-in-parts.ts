import { limits } from '@tollbase/contract/limits'
import { concatInTurns } from './concat-in-turns.ts'

/** Parts that are kept as they came, until they are joined; and the bytes from which they need not be. */
const loosePartsMax = 64
const looseBytesMax = 64 * 1024

/**
 * Collects bytes that come in parts. Short parts are joined on the way: each takes some 200 bytes of memory beside its
 * own, so a body that comes byte by byte would take hundreds of times its length.
 */
export class BytesInParts {
  readonly #joined: Buffer[] = []
  #loose: Buffer[] = []
  #looseBytes = 0
  #length = 0
  #count = 0

  get length(): number {
    return this.#length
  }

  /** True where the parts are more than anybody needs for so many bytes. */
  get isCrumbled(): boolean {
    return isCrumbled({ parts: this.#count, bytes: this.#length })
  }

  add(part: Buffer): void {
    this.#count += 1
    this.#length += part.length
    this.#looseBytes += part.length
    this.#loose.push(part)
    if (this.#loose.length < loosePartsMax) return
    if (this.#looseBytes < looseBytesMax) this.#joined.push(Buffer.concat(this.#loose))
    else this.#joined.push(...this.#loose)
    this.#loose = []
    this.#looseBytes = 0
  }

  /** Returns a copy, which does not keep alive the memory that the parts were read into. */
  concat(): Promise<Buffer> {
    return concatInTurns([...this.#joined, ...this.#loose])
  }
}

/**
 * Says that a body comes in too many parts for its bytes: a part of one byte costs 5 microseconds before anybody sees
 * it, a thousand times as much as a byte of a long part.
 */
export function isCrumbled({
  parts,
  bytes,
}: {
  readonly parts: number
  readonly bytes: number
}): boolean {
  return parts > limits.bodyPartsMax + bytes / limits.bytesOfPartMin
}
