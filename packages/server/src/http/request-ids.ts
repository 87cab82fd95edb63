import type { IncomingMessage } from 'node:http'
import { RandomPool } from '../base/random-pool.ts'
import type { World } from '../base/world.ts'

const idBytes = 12
/** Characters without a meaning in logs, headers and JSON. */
const acceptable = /^[A-Za-z0-9._-]{8,64}$/

/**
 * Makes the id of each request: its own X-Request-Id, where that is 8 to 64 of A-Z a-z 0-9 . _ -, or a random one
 * of 96 bits. Nothing is looked up or decided by it, so a caller who repeats one only confuses their own search.
 */
export function makeRequestIds(world: World): (request: IncomingMessage) => string {
  const pool = new RandomPool(world)
  return (request) => {
    const given = request.headers['x-request-id']
    return typeof given === 'string' && acceptable.test(given) ? given : pool.text(idBytes, 'hex')
  }
}
