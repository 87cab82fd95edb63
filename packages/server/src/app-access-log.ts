import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'

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
        path: masked(request.raw.url ?? ''),
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
/** What looks like a key of an application or the operator, wherever in a URL it was put by mistake. */
const keyText = /((?:app|op)_[A-Za-z0-9_-]{4})[A-Za-z0-9_-]{20,}/g

/** The path with its query, without the keys in it. */
function masked(url: string): string {
  const mark = url.indexOf('?')
  if (mark < 0) return url.replace(keyText, '$1***').slice(0, pathCharsMax)
  const query = url
    .slice(mark + 1)
    .split('&')
    .map((part) => (nameOf(part) === 'api_key' ? 'api_key=***' : part))
    .join('&')
  // Cut last: a key cut short would no longer look like one.
  return `${url.slice(0, mark)}?${query}`.replace(keyText, '$1***').slice(0, pathCharsMax)
}

/** The parameter's name as the server reads it: `api%5Fkey` is `api_key` too. */
function nameOf(part: string): string {
  const name = part.split('=', 1)[0] ?? ''
  try {
    return decodeURIComponent(name.replaceAll('+', ' '))
  } catch {
    return name
  }
}
