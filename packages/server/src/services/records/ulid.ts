import type { RandomPool } from '../../base/random-pool.ts'
import type { World } from '../../base/world.ts'

const alphabet = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A ULID (github.com/ulid/spec): 48 bits of milliseconds, 80 random bits, 26 characters that sort by time. */
export function makeUlid(world: Pick<World, 'now'>, random: RandomPool): string {
  let time = world.now()
  let head = ''
  for (let at = 0; at < 10; at++) {
    head = (alphabet[time % 32] ?? '') + head
    time = Math.floor(time / 32)
  }
  let tail = ''
  for (const byte of random.bytes(16)) tail += alphabet[byte % 32]
  return head + tail
}
