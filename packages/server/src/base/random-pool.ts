import type { World } from './world.ts'

const drawBytes = 4096

/** Random texts, drawn many at a time: a draw of its own would be a twentieth of a small request's work. */
export class RandomPool {
  readonly #world: World
  #drawn: Buffer = Buffer.alloc(0)
  #at = 0

  constructor(world: World) {
    this.#world = world
  }

  /** So many bytes that were never given before, up to 4,096, as text. */
  text(bytes: number, encoding: 'hex' | 'base64url'): string {
    if (this.#at + bytes > this.#drawn.length) {
      this.#drawn = this.#world.randomBytes(drawBytes)
      this.#at = 0
    }
    this.#at += bytes
    return this.#drawn.toString(encoding, this.#at - bytes, this.#at)
  }
}
