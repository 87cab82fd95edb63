import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { maskUrl } from '../http/mask-url.ts'

/**
 * Writes one line for each finished request, at level info. Headers, bodies and values of parameters never get into
 * it, and keys that came in the URL are masked, so that a log may be kept where keys and payments may not.
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
        path: hideNames(request.raw.url ?? '').slice(0, pathCharsMax),
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
 * Masks keys of records and ids of blobs, which may be as secret as what they name, and all values of parameters: also
 * where no route takes the request, and where the path is escaped as the router reads it.
 */
function hideNames(url: string): string {
  const [path = ''] = url.split(/[?#]/, 1)
  const parts = path.split(/(\/+)/)
  const names = parts.map((part) => decodePart(part).toLowerCase())
  // Every second part is a slash, or more of them.
  const isHidden = (at: number) =>
    (names[at - 2] === 'records' && names[at - 6] === 'collections') ||
    (names[at - 4] === 'blobs' && names[at] !== 'uploads') ||
    names[at]?.includes('/') === true
  const hidden = parts.map((part, at) => (at % 2 === 0 && isHidden(at) ? '***' : part)).join('')
  return maskUrl(hidden + hideValues(url.slice(path.length)))
}

/** Keeps names that a program may have given, and no value. */
function hideValues(query: string): string {
  if (query === '') return ''
  const names = query
    .slice(1)
    .split('&')
    .map((part) => decodePart(part.split('=', 1)[0] ?? ''))
  return `?${names.map((name) => (/^[\w.-]{1,40}$/.test(name) ? `${name}=***` : '***')).join('&')}`
}

function decodePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

/** Returns the status; 499 where the client hung up before the answer began, as nginx does. */
export function getStatus(reply: FastifyReply): number {
  return reply.raw.headersSent ? reply.statusCode : 499
}

const pathCharsMax = 500
