import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Fault } from '../base/fault.ts'

/** Judges a request by its head, before its body is read; throws what refuses it. */
export type Admit = (request: FastifyRequest) => void

/** Puts the rate limits around every route that is added from now on. */
export function limitRequests(fastify: FastifyInstance, admit: Admit): void {
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
    // Also for work that throws. Not when the answer is over: a client that hangs up does not end what it caused.
    options.handler = async function work(request, reply) {
      request.pass.hasArrived = true
      try {
        return await handler.call(this, request, reply)
      } catch (error) {
        const status = error instanceof Fault ? error.status : 500
        request.pass.finish({ status, boughtNew: false })
        throw error
      }
    }
  })
}
