import { keyHeaders } from '@tollbase/contract/openapi-components'
import { replyHeaders } from '@tollbase/contract/reply-headers'
import { requestHeaders } from '@tollbase/contract/request-headers'
import type { FastifyInstance, FastifyRequest } from 'fastify'

/** Headers of replies that browsers may read. */
const exposed = Object.keys(replyHeaders).join(', ')

/**
 * Headers that browsers may send: any, since libraries add some of their own, such as `traceparent`. The star does not
 * stand for Authorization, and old browsers do not know it, so the headers that are read here are named besides. Both
 * official x402 clients send `Access-Control-Expose-Headers` as a request header.
 */
const allowed = [
  ...['*', 'Content-Type', 'Accept', 'Authorization', 'X-Request-Id'],
  ...['Access-Control-Expose-Headers', ...keyHeaders, ...Object.keys(requestHeaders)],
].join(', ')

/**
 * Allows any origin, since credentials travel in headers that a page must set itself. Routes that identify the
 * caller by his address are excepted (`sameOriginOnly`).
 */
export function allowAnyOrigin(fastify: FastifyInstance): void {
  const closed = new Set<string>()
  fastify.addHook('onRoute', ({ url, config }) => {
    if (config?.route?.sameOriginOnly === true) closed.add(url)
  })
  const isClosed = (request: FastifyRequest) =>
    request.routeOptions.config.route?.sameOriginOnly === true ||
    (request.method === 'OPTIONS' && closed.has(plainPath(request.raw.url ?? '')))
  fastify.addHook('onRequest', (request, reply, done) => {
    if (isClosed(request)) return done()
    reply.header('access-control-allow-origin', '*')
    reply.header('access-control-expose-headers', exposed)
    done()
  })
  fastify.options('/*', async (request, reply) => {
    reply.code(200).header('content-type', 'application/json; charset=utf-8')
    if (isClosed(request)) return reply.send('{}')
    reply.header('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS')
    reply.header('access-control-allow-headers', allowed)
    reply.header('access-control-max-age', '86400')
    return reply.send('{}')
  })
}

/** Returns the path as the router reads it. */
function plainPath(url: string): string {
  const [path = ''] = url.split('?', 1)
  return path.replace(/\/{2,}/g, '/').replace(/(.)\/$/, '$1')
}
