import type { World } from './world.ts'

const drawBytesMax = 4096

/**
 * Random bytes, drawn many at a time: a draw of its own would be a twentieth of a small request's work. Each draw is
 * twice the one before it, so a pool of which little is taken costs little.
 */
export class RandomPool {
  readonly #world: World
  #drawn: Buffer = Buffer.alloc(0)
  #at = 0

  constructor(world: World) {
    this.#world = world
  }

  /** So many bytes that were never given before, up to 4,096. */
  bytes(count: number): Buffer {
    if (this.#at + count > this.#drawn.length) {
      const drawBytes = Math.min(drawBytesMax, 2 * this.#drawn.length)
      this.#drawn = this.#world.randomBytes(Math.max(drawBytes, count))
      this.#at = 0
    }
    this.#at += count
    return this.#drawn.subarray(this.#at - count, this.#at)
  }

  /** The same as text. */
  text(count: number, encoding: 'hex' | 'base64url'): string {
    return this.bytes(count).toString(encoding)
  }
}
