import type { FastifyInstance, FastifyReply } from 'fastify'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'

export type ArrivalOptions = {
  readonly world: World
  /** The requests that are not over. */
  readonly open: ReadonlySet<FastifyReply>
  /** How long a request may take to arrive. */
  readonly timeoutMs: number
  readonly refuse: (error: Fault, reply: FastifyReply) => unknown
}

const looksPerTimeout = 10

/** Ends requests whose body does not arrive in time: Node's own deadline watches the headers only. */
export function arriveInTime(fastify: FastifyInstance, options: ArrivalOptions): void {
  const { world, open, timeoutMs, refuse } = options
  const stop = world.every(timeoutMs / looksPerTimeout, () => {
    const now = world.now()
    for (const reply of open) {
      const { pass } = reply.request
      pass.seenAtMs ??= now
      if (pass.hasArrived || now <= pass.seenAtMs + timeoutMs) continue
      pass.hasArrived = true
      reply.header('connection', 'close')
      reply.raw.once('finish', () => reply.request.raw.destroy())
      refuse(new Fault('REQUEST_TIMEOUT'), reply)
    }
  })
  fastify.addHook('onClose', async () => stop())
}
