import type { IncomingMessage } from 'node:http'
import { RandomPool } from '../base/random-pool.ts'
import type { World } from '../base/world.ts'

const idBytes = 12
/** Letters, digits and three signs mean nothing to logs, headers and JSON. */
const acceptable = /^[A-Za-z0-9._-]{8,64}$/

/**
 * The id of each request: the one that it brings as X-Request-Id, where that is 8 to 64 of A-Z a-z 0-9 . _ -, or a
 * random one of 96 bits. Nothing is looked up or decided by it, so a caller who repeats one only confuses their own search.
 */
export function requestIds(world: World): (request: IncomingMessage) => string {
  const pool = new RandomPool(world)
  return (request) => {
    const given = request.headers['x-request-id']
    return typeof given === 'string' && acceptable.test(given) ? given : pool.text(idBytes, 'hex')
  }
}
