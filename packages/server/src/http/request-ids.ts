import type { IncomingMessage } from 'node:http'
import type { World } from '../base/world.ts'

const idBytes = 12
const idsPerDraw = 256
/** Letters, digits and three signs mean nothing to logs, headers and JSON. */
const acceptable = /^[A-Za-z0-9._-]{8,64}$/

/**
 * The id of each request: the one that it brings as X-Request-Id, where that is 8 to 64 of A-Z a-z 0-9 . _ -, or a
 * random one of 96 bits. Nothing is looked up or decided by it, so a caller who repeats one only confuses their own search.
 */
export function requestIds(world: World): (request: IncomingMessage) => string {
  let drawn: Buffer = Buffer.alloc(0)
  let at = 0
  return (request) => {
    const given = request.headers['x-request-id']
    if (typeof given === 'string' && acceptable.test(given)) return given
    // Many at a time: a draw of its own would be a twentieth of a small request's work.
    if (at === drawn.length) {
      drawn = world.randomBytes(idBytes * idsPerDraw)
      at = 0
    }
    at += idBytes
    return drawn.toString('hex', at - idBytes, at)
  }
}
