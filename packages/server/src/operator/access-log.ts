import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { maskUrl } from '../http/mask-url.ts'

/**
 * Writes one line for each finished request, at level info. Headers and bodies never get into it, and keys that came
 * in the URL are masked, so that a log may be kept where keys and payments may not.
 */
export function createAccessLog(
  log: Logger,
): (request: FastifyRequest, reply: FastifyReply, ms: number) => void {
  return (request, reply, ms) => {
    if (!log.isLevelEnabled('info')) return
    const { config, url } = request.routeOptions
    const { context } = request
    log.info(
      {
        requestId: request.id,
        method: request.method,
        operation: config.operationId,
        route: url,
        // Cut last: a key cut short would no longer look like one.
        path: hideKeys(request.raw.url ?? '').slice(0, pathCharsMax),
        status: getStatus(reply),
        ms: Math.round(ms * 100) / 100,
        bytes: Number(reply.getHeader('content-length') ?? 0),
        app: context.app,
        caller: context.caller,
        key: context.keyPrefix,
        payment: reply.getHeader('x-payment-id'),
        address: request.ip,
      },
      'request',
    )
  }
}

/**
 * Masks keys of records too, which may be as secret as the records: also where no route takes the request, and where
 * the collection itself is called records.
 */
function hideKeys(url: string): string {
  const [path = ''] = url.split('?', 1)
  const hidden = path.replace(/(\/collections\/+[^/]+\/+records\/+)[^/]+/i, '$1***')
  return maskUrl(hidden + url.slice(path.length), ['api_key', 'key'])
}

/** Returns the status; 499 where the client hung up before the answer began, as nginx does. */
export function getStatus(reply: FastifyReply): number {
  return reply.raw.headersSent ? reply.statusCode : 499
}

const pathCharsMax = 500
