import type { FastifyInstance, FastifyReply } from 'fastify'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'

export type ArrivalOptions = {
  readonly world: World
  /** How long a request may take to arrive. */
  readonly timeoutMs: number
  readonly refuse: (error: Fault, reply: FastifyReply) => unknown
}

const looksPerTimeout = 10

/** Ends requests whose body does not arrive in time: Node's own deadline watches the headers only. */
export function arriveInTime(fastify: FastifyInstance, options: ArrivalOptions): void {
  const { world, timeoutMs, refuse } = options
  const arriving = new Map<FastifyReply, number>()
  fastify.addHook('onRequest', (_request, reply, done) => {
    arriving.set(reply, world.now() + timeoutMs)
    done()
  })
  fastify.addHook('preValidation', (_request, reply, done) => {
    arriving.delete(reply)
    done()
  })
  fastify.addHook('onResponse', (_request, reply, done) => {
    arriving.delete(reply)
    done()
  })
  const stop = world.every(timeoutMs / looksPerTimeout, () => {
    const now = world.now()
    for (const [reply, until] of arriving) {
      if (now <= until) continue
      arriving.delete(reply)
      reply.header('connection', 'close')
      reply.raw.once('finish', () => reply.request.raw.destroy())
      refuse(new Fault('REQUEST_TIMEOUT'), reply)
    }
  })
  fastify.addHook('onClose', async () => stop())
}
