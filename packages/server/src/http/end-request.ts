import type { FastifyInstance, FastifyReply } from 'fastify'
import type { Fault } from '../base/fault.ts'

/** Ends a request before its time. */
export type EndRequest = (fault: Fault, reply: FastifyReply) => void

/**
 * Notes each answer when it goes to the hooks that change it. One of them waits, and neither Fastify nor Node knows of
 * the answer until it is written.
 */
export function noteAnswers(fastify: FastifyInstance): void {
  // biome-ignore lint/complexity/useMaxParams: as Fastify calls it.
  fastify.addHook('onSend', (request, _reply, _payload, done) => {
    request.context.isAnswered = true
    done()
  })
}

/** Says that a request has an answer, written or on its way, or needs none any more. A second one would be an error. */
export function hasAnswer({ raw, request, sent }: FastifyReply): boolean {
  return sent || raw.headersSent || raw.destroyed || request.context.isAnswered
}

/** Ends the connection after the answer, whatever is still to come of the request. */
export function endConnection(reply: FastifyReply): void {
  reply.header('connection', 'close')
  reply.raw.once('finish', () => reply.request.raw.destroy())
}

/** Makes the end of requests whose rest nobody wants: by an answer, or where one is there already, at once. */
export function makeEndRequest(answer: (fault: Fault, reply: FastifyReply) => unknown): EndRequest {
  return (fault, reply) => {
    const { context, raw } = reply.request
    // Before its turn it has no context.
    if (context === undefined || context === null || hasAnswer(reply)) raw.destroy()
    else {
      context.hasArrived = true
      endConnection(reply)
      answer(fault, reply)
    }
  }
}
