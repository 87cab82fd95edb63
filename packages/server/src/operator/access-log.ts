import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { maskedUrl } from '../http/mask-url.ts'

/**
 * Writes one line for each finished request, at level info. Headers and bodies never get into it, and keys that came
 * in the URL are masked, so that a log may be kept where keys and payments may not.
 */
export function accessLog(
  log: Logger,
): (request: FastifyRequest, reply: FastifyReply, ms: number) => void {
  return (request, reply, ms) => {
    if (!log.isLevelEnabled('info')) return
    const { config, url } = request.routeOptions
    const { pass } = request
    log.info(
      {
        requestId: request.id,
        method: request.method,
        operation: config.operationId,
        route: url,
        // Cut last: a key cut short would no longer look like one.
        path: maskedUrl(request.raw.url ?? '').slice(0, pathCharsMax),
        status: statusOf(reply),
        ms: Math.round(ms * 100) / 100,
        bytes: Number(reply.getHeader('content-length') ?? 0),
        app: pass.app,
        caller: pass.caller,
        key: pass.keyPrefix,
        payment: reply.getHeader('x-payment-id'),
        address: request.ip,
      },
      'request',
    )
  }
}

/** 499 where the client hung up before the answer began, as nginx has it. */
export function statusOf(reply: FastifyReply): number {
  return reply.raw.headersSent ? reply.statusCode : 499
}

const pathCharsMax = 500
