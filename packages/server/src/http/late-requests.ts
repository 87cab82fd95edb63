import type { FastifyInstance } from 'fastify'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import type { EndRequest } from './end-request.ts'
import type { OpenReplies } from './open-replies.ts'

export type LateRequestOptions = {
  readonly world: World
  readonly open: OpenReplies
  /** Longest time for a request to arrive. */
  readonly timeoutMs: number
  readonly endRequest: EndRequest
}

const looksPerTimeout = 10

/** Ends requests whose body does not arrive in time: Node's own deadline watches the headers only. */
export function refuseLateRequests(fastify: FastifyInstance, options: LateRequestOptions): void {
  const { world, open, timeoutMs, endRequest } = options
  const stop = world.every(timeoutMs / looksPerTimeout, () => {
    const now = world.now()
    for (const reply of open) {
      const { context } = reply.request
      context.seenAtMs ??= now
      if (context.hasArrived || now <= context.seenAtMs + timeoutMs) continue
      endRequest(new Fault('REQUEST_TIMEOUT'), reply)
    }
  })
  fastify.addHook('onClose', async () => stop())
}
