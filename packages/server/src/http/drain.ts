import type { FastifyInstance, FastifyReply } from 'fastify'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'

/** How long a reader has, after all requests are answered, to take what is on its way. */
const readMs = 2_000

export type DrainOptions = {
  readonly world: World
  /** The requests that are not over. */
  readonly open: ReadonlySet<FastifyReply>
  /** How long requests under way have to finish. */
  readonly finishMs: number
  /** Answers with an error. */
  readonly refuse: (error: Fault, reply: FastifyReply) => void
}

/**
 * Ends a server in bounded time: no new work once it closes, then UNAVAILABLE with Retry-After for what has not
 * finished, then connections are cut. Work that was answered so goes on until the storage under it closes.
 */
export function drainInTime(
  fastify: FastifyInstance,
  options: DrainOptions,
): { readonly requestEnded: () => void } {
  const { world, open, finishMs, refuse } = options
  let isClosing = false
  fastify.addHook('onRequest', (request, reply, done) => {
    if (!isClosing) return done()
    // Whoever watches readiness on a connection that is still open shall see it go.
    const isWatching = request.routeOptions.config.operationId === 'getReady'
    hangUpAfter(reply)
    return done(isWatching ? undefined : stopping())
  })
  // Node takes a connection as idle whose answer is written and not yet read, and would cut a download short. So none
  // is closed before all answers are over; what is asked on an idle one until then is refused.
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
      for (const reply of open) if (!reply.raw.headersSent) refuse(stopping(), reply)
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
    requestEnded: () => {
      if (isClosing && open.size === 0) setImmediate(closeIdle)
    },
  }
}

/** A connection that is kept alive now would keep the server from ending until it times out. */
function hangUpAfter(reply: FastifyReply): void {
  if (!reply.raw.headersSent) reply.header('connection', 'close')
}

function stopping(): Fault {
  return new Fault('UNAVAILABLE', {
    message: 'This server is stopping; ask again, with the same payment if there was one.',
    retryAfterSeconds: 2,
  })
}
