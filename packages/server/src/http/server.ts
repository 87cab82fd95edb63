import { limits } from '@tollbase/contract/limits'
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
} from 'fastify'
import type { Logger } from 'pino'
import { Fault } from '../base/fault.ts'
import type { World } from '../base/world.ts'
import { allowAnyOrigin } from './cors.ts'

export type HttpOptions = {
  readonly world: World
  readonly log: Logger
  /** Called once per finished request, for metrics and the access log. */
  readonly onFinish: (request: FastifyRequest, reply: FastifyReply) => void
}

/** The bare HTTP server: body limits, request ids, CORS and errors; routes are added by `implement`. */
export function createServer(options: HttpOptions): FastifyInstance {
  const fastify = Fastify({
    logger: false,
    bodyLimit: limits.bodyBytesMax,
    routerOptions: {
      ignoreTrailingSlash: true,
      ignoreDuplicateSlashes: true,
      maxParamLength: 1024,
    },
    requestTimeout: 30_000,
    keepAliveTimeout: 65_000,
    genReqId: requestIds(options.world),
    forceCloseConnections: 'idle',
    exposeHeadRoutes: false,
    // A URL that cannot be decoded never reaches the hooks and handlers below.
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      answerError(error, { request, reply, log: options.log })
    },
  })
  fastify.removeAllContentTypeParsers()
  fastify.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  )
  allowAnyOrigin(fastify)
  fastify.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id)
    reply.header('x-content-type-options', 'nosniff')
    done()
  })
  let closing = false
  fastify.addHook('preClose', async () => {
    closing = true
  })
  fastify.addHook('onSend', async (_request, reply) => {
    // A connection that is kept alive now would keep the server from ending until it times out.
    if (closing) reply.header('connection', 'close')
  })
  fastify.addHook('onResponse', (request, reply, done) => {
    options.onFinish(request, reply)
    done()
  })
  fastify.setErrorHandler((error, request, reply) =>
    answerError(error, { request, reply, log: options.log }),
  )
  fastify.setNotFoundHandler((request, reply) =>
    answerError(
      new Fault('ROUTE_NOT_FOUND', {
        message: `There is no ${request.method} ${pathOf(request)}; GET /docs lists the endpoints`,
      }),
      { request, reply, log: options.log },
    ),
  )
  return fastify
}

const idBytes = 12
const idsPerDraw = 256

/** Random ids, drawn many at a time: a draw of its own would be a twentieth of a small request's work. */
function requestIds(world: World): () => string {
  let drawn: Buffer = Buffer.alloc(0)
  let at = 0
  return () => {
    if (at === drawn.length) {
      drawn = world.randomBytes(idBytes * idsPerDraw)
      at = 0
    }
    at += idBytes
    return drawn.toString('hex', at - idBytes, at)
  }
}

function answerError(
  error: unknown,
  to: { request: FastifyRequest; reply: FastifyReply; log: Logger },
): FastifyReply {
  const fault = error instanceof Fault ? error : faultOf(error)
  if (fault.status >= 500) {
    to.log.error(
      {
        requestId: to.request.id,
        operation: to.request.routeOptions.config?.operationId,
        code: fault.code,
        internal: fault.internal,
        error: fault.cause,
      },
      'request failed',
    )
  }
  if (fault.retryAfterSeconds !== undefined)
    to.reply.header('retry-after', String(fault.retryAfterSeconds))
  else if (fault.status === 503 || fault.status === 429) to.reply.header('retry-after', '1')
  to.reply.code(fault.status).header('content-type', 'application/json; charset=utf-8')
  if (to.request.routeOptions.config?.route?.paid) to.reply.header('cache-control', 'no-store')
  return to.reply.send(
    JSON.stringify({
      error: fault.message,
      code: fault.code,
      ...(fault.details && { details: fault.details }),
      request_id: to.request.id,
    }),
  )
}

/** Fastify's own refusals, and bugs: those answer INTERNAL and their text stays inside. */
function faultOf(error: unknown): Fault {
  const { code, statusCode } = error as Partial<FastifyError>
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') {
    return new Fault('PAYLOAD_TOO_LARGE', {
      message: `The request body is larger than ${limits.bodyBytesMax} bytes`,
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

function pathOf(request: FastifyRequest): string {
  const url = request.raw.url ?? ''
  const mark = url.indexOf('?')
  return (mark < 0 ? url : url.slice(0, mark)).slice(0, 200)
}
