import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault.ts'

/** Judges a request by its head, before its body is read; throws to refuse it. */
export type Admit = (request: FastifyRequest) => void

/** Has the requests of every route that is added from now on admitted, and notes the end of their work. */
export function admitRequests(fastify: FastifyInstance, admit: Admit): void {
  fastify.addHook('onRequest', (request, _reply, done) => {
    try {
      admit(request)
      done()
    } catch (error) {
      done(error instanceof Error ? error : new Error(String(error)))
    }
  })
  fastify.addHook('onRoute', (options) => {
    const { handler } = options
    // The wrapper settles work that throws too. The end of the answer does not count: a client that hangs up does
    // not end the work it caused.
    options.handler = async function work(request, reply) {
      request.context.hasArrived = true
      try {
        return await handler.call(this, request, reply)
      } catch (error) {
        const status = error instanceof Fault ? error.status : 500
        request.context.finish({ status, sale: 'none' })
        throw error
      }
    }
  })
}
