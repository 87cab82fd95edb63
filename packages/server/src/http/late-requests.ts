import type { FastifyInstance, FastifyReply } from 'fastify'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import type { OpenReplies } from './open-replies.ts'

export type LateRequestOptions = {
  readonly world: World
  readonly open: OpenReplies
  /** Longest time for a request to arrive. */
  readonly timeoutMs: number
  readonly refuse: (error: Fault, reply: FastifyReply) => unknown
}

const looksPerTimeout = 10

/** Ends requests whose body does not arrive in time: Node's own deadline watches the headers only. */
export function refuseLateRequests(fastify: FastifyInstance, options: LateRequestOptions): void {
  const { world, open, timeoutMs, refuse } = options
  const stop = world.every(timeoutMs / looksPerTimeout, () => {
    const now = world.now()
    for (const reply of open) {
      const { context } = reply.request
      context.seenAtMs ??= now
      if (context.hasArrived || now <= context.seenAtMs + timeoutMs) continue
      context.hasArrived = true
      reply.header('connection', 'close')
      reply.raw.once('finish', () => reply.request.raw.destroy())
      refuse(new Fault('REQUEST_TIMEOUT'), reply)
    }
  })
  fastify.addHook('onClose', async () => stop())
}
