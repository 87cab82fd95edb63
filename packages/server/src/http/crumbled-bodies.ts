import { limits } from '@tollbase/contract/limits'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isCrumbled } from '../base/bytes-in-parts.ts'
import { Fault } from '../base/fault.ts'
import type { EndRequest } from './end-request.ts'

/**
 * Refuses bodies that come in too many small chunks, whoever reads them, and also while nobody does: until then the
 * stream keeps each chunk with an overhead of some 200 bytes. Whoever counts by reading would make the body flow. Only
 * bodies with Transfer-Encoding have chunks; all others come as the network brings them.
 */
export function refuseCrumbledBodies(fastify: FastifyInstance, endRequest: EndRequest): void {
  fastify.addHook('onRequest', (request, reply, done) => {
    if (request.headers['transfer-encoding'] !== undefined)
      watchParts(request.raw, () => endRequest(makeCrumbledFault(), reply))
    done()
  })
}

/** Calls `end` once, where the body has too many parts for its bytes; what comes after that is thrown away. */
function watchParts(raw: FastifyRequest['raw'], end: () => void): void {
  const push = raw.push.bind(raw)
  // Begins to read, and takes nothing: once it has answered, Node drops a body that nobody began to read, uncounted.
  raw.read(0)
  let parts = 0
  let bytes = 0
  let isOver = false
  raw.push = (part: Buffer | null, encoding) => {
    if (isOver) return true
    if (part === null) return push(part, encoding)
    parts += 1
    bytes += part.length
    isOver = isCrumbled({ parts, bytes })
    if (!isOver) return push(part, encoding)
    end()
    return true
  }
}

function makeCrumbledFault(): Fault {
  return new Fault('VALIDATION_FAILED', {
    message: `The body comes in too many small chunks; send at least ${limits.bytesOfPartMin} bytes in each`,
  })
}
