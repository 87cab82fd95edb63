import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault.ts'
import { type Place, SharedRoom } from '../base/shared-room.ts'
import type { EndRequest } from './end-request.ts'
import { toAddressKey } from './rate-limits.ts'

export type IncomingOptions = {
  /** Bytes of all large bodies together in memory. */
  readonly bytesMax: number
  /** True where the request's body is held to the bound: good keys have rates of their own. */
  readonly isBound: (request: FastifyRequest) => boolean
  readonly endRequest: EndRequest
}

/** Bytes up to which a body counts as a part of its connection's cost, so that small requests always come through. */
const smallBytes = 64 * 1024

/**
 * Bounds the memory of bodies from callers without a key, from their arrival to their answer: a body is read whole
 * before anybody looks at it. Past the bound the next body that grows large is refused (503), and its connection
 * closed. One address has a quarter of the bytes at most.
 */
export function limitIncoming(fastify: FastifyInstance, options: IncomingOptions): void {
  const { bytesMax, isBound, endRequest } = options
  const quarter = bytesMax / 4
  const room = new SharedRoom({ max: bytesMax, ofHolderMax: quarter, forNew: quarter })
  // biome-ignore lint/complexity/useMaxParams: as Fastify calls it.
  fastify.addHook('preParsing', (request, reply, payload, done) => {
    const holder = toAddressKey(request.ip)
    // No hook runs between this one and the reading of the body, which starts the stream.
    done(null, payload)
    if (!isBound(request)) return
    let own = 0
    let place: Place | undefined
    const count = (chunk: Buffer) => {
      own += chunk.length
      if (own <= smallBytes) return
      place ??= room.open(holder)
      if (place.set(own - smallBytes)) return
      payload.off('data', count)
      endRequest(tooMany(), reply)
    }
    payload.on('data', count)
    reply.raw.once('close', () => {
      // The rest of a body that is not read may still come, and is thrown away.
      payload.off('data', count)
      place?.set(0)
    })
  })
}

function tooMany(): Fault {
  return new Fault('UNAVAILABLE', {
    message: `Too many large requests without a key are arriving; send at most ${smallBytes} bytes, or try again shortly`,
    retryAfterSeconds: 2,
  })
}
