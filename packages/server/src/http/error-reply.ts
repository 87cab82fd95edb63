import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import { createRefusalPauses } from './refusal-pauses.ts'

/** The part of the server's options that its errors need. */
type ErrorOptions = {
  readonly world: World
  readonly log: Logger
  /** Translates an error of a lower room into a fault, where it is no bug. */
  readonly explain: (error: unknown) => Fault | undefined
  readonly refusalsWaitingMax?: number
}

/** Answers what hooks and handlers throw, and gives what does so; a costly refusal waits for its pause. */
export function answerErrors(
  fastify: FastifyInstance,
  options: ErrorOptions,
  isClosing: () => boolean,
) {
  const pauses = createRefusalPauses(options)
  const answer = async (error: unknown, request: FastifyRequest, reply: FastifyReply) => {
    const known = options.explain(error) ?? error
    const fault = known instanceof Fault ? known : toFault(known, request)
    // A server that is stopping waits for nobody.
    if (!isClosing()) await pauses.wait(fault, reply)
    // Its end may have been answered meanwhile.
    if (!reply.sent && !reply.raw.headersSent)
      return answerError(fault, { request, reply, log: options.log })
    if (fault.code === 'INTERNAL') noteFailure(fault, request, options.log)
    if (!reply.sent) reply.raw.destroy()
    return reply
  }
  fastify.setErrorHandler(answer)
  return answer
}

/** Answers an error: `error`, `code`, `details` and `request_id` as JSON, with the headers that its code needs. */
export function answerError(
  error: unknown,
  to: { request: FastifyRequest; reply: FastifyReply; log: Logger },
): FastifyReply {
  const fault = error instanceof Fault ? error : toFault(error, to.request)
  // A client that hung up ended its own work.
  const isBroken = to.reply.raw.destroyed && fault.code === 'UNAVAILABLE'
  if (fault.status >= 500 && !isBroken) noteFailure(fault, to.request, to.log)
  for (const [name, value] of Object.entries(fault.headers)) to.reply.header(name, value)
  if (fault.retryAfterSeconds !== undefined)
    to.reply.header('retry-after', String(fault.retryAfterSeconds))
  else if (fault.status === 503 || fault.status === 429) to.reply.header('retry-after', '1')
  if (fault.code === 'RANGE_NOT_SATISFIABLE')
    to.reply.header('content-range', `bytes */${String(fault.details?.size)}`)
  to.reply.code(fault.status).header('content-type', 'application/json; charset=utf-8')
  return to.reply.send(
    JSON.stringify({
      error: fault.message,
      code: fault.code,
      ...(fault.details && { details: fault.details }),
      request_id: to.request.id,
    }),
  )
}

function noteFailure(fault: Fault, request: FastifyRequest, log: Logger): void {
  log.error(
    {
      requestId: request.id,
      operation: request.routeOptions.config?.operationId,
      code: fault.code,
      internal: fault.internal,
      payment: fault.details?.payment_id,
      error: fault.cause,
    },
    'request failed',
  )
}

/** Converts Fastify's own refusals, and bugs, which answer INTERNAL and keep their text inside. */
function toFault(error: unknown, { routeOptions }: FastifyRequest): Fault {
  const { code, statusCode } = error as Partial<FastifyError>
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Fault('PAYLOAD_TOO_LARGE', {
      message: `The request body is larger than ${routeOptions.bodyLimit} bytes`,
    })
  }
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new Fault('VALIDATION_FAILED', { message: 'The request cannot be read', cause: error })
  }
  return new Fault('INTERNAL', {
    cause: error,
    internal: error instanceof Error ? (error.stack ?? error.message) : String(error),
  })
}
