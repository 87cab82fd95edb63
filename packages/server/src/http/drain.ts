import type { FastifyInstance, FastifyReply } from 'fastify'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import { hasAnswer } from './end-request.ts'
import type { OpenReplies } from './open-replies.ts'

/** Time, after all requests are answered, for a reader to take the bytes on their way. */
const readMs = 2_000

export type DrainOptions = {
  readonly world: World
  readonly open: OpenReplies
  /** Time for requests under way to finish. */
  readonly finishMs: number
  /** Answers with an error. */
  readonly refuse: (error: Fault, reply: FastifyReply) => void
}

/**
 * Ends a server in bounded time: it takes no new work, then answers unfinished requests with UNAVAILABLE and
 * Retry-After, then cuts connections. Work answered in this way goes on until the storage under it closes.
 */
export function drainInTime(
  fastify: FastifyInstance,
  options: DrainOptions,
): { readonly requestEnded: () => void; readonly isClosing: () => boolean } {
  const { world, open, finishMs, refuse } = options
  let isClosing = false
  fastify.addHook('onRequest', (request, reply, done) => {
    if (!isClosing) return done()
    // A readiness probe on an open connection must see the service go.
    const isWatching = request.routeOptions.config.operationId === 'getReady'
    hangUpAfter(reply)
    return done(isWatching ? undefined : stopping())
  })
  // Node counts a connection as idle once its answer is written, read or not, and would cut a download short. So
  // none is closed before all answers are over; requests on an idle one until then are refused.
  const closeIdle = fastify.server.closeIdleConnections.bind(fastify.server)
  fastify.server.closeIdleConnections = () => {
    if (open.size === 0) closeIdle()
  }
  let stopTimers: () => void = () => undefined
  fastify.addHook('preClose', async () => {
    isClosing = true
    for (const reply of open) hangUpAfter(reply)
    const stopFinish = world.every(finishMs, () => {
      stopFinish()
      for (const reply of open) if (!hasAnswer(reply)) refuse(stopping(), reply)
    })
    const stopReading = world.every(finishMs + readMs, () => {
      stopReading()
      fastify.server.closeAllConnections()
    })
    stopTimers = () => {
      stopFinish()
      stopReading()
    }
  })
  fastify.addHook('onClose', async () => stopTimers())
  return {
    isClosing: () => isClosing,
    requestEnded: () => {
      if (isClosing && open.size === 0) setImmediate(closeIdle)
    },
  }
}

/** Closes the connection after this answer; kept alive, it would delay the end of the server until it times out. */
function hangUpAfter(reply: FastifyReply): void {
  if (!reply.raw.headersSent) reply.header('connection', 'close')
}

function stopping(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'This server is stopping; ask again, with the same payment if there was one.',
    retryAfterSeconds: 2,
  })
}
