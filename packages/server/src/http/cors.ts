import type { FastifyInstance } from 'fastify'

/** What browsers may read of a paid reply. */
const exposed = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-PAYMENT-RESPONSE',
  'X-Receipt-Id',
  'X-Request-Id',
  'Retry-After',
  'RateLimit',
  'RateLimit-Policy',
  'Idempotent-Replayed',
].join(', ')

/**
 * What browsers may send. Both official x402 clients send `Access-Control-Expose-Headers` as a
 * request header, so it must be allowed like the payment headers.
 */
const allowed = [
  'Content-Type',
  'Accept',
  'Authorization',
  'X-App-Key',
  'X-API-Key',
  'X-Agent-Key',
  'X-User-Key',
  'X-Wallet-Address',
  'X-Timestamp',
  'X-Signature',
  'PAYMENT-SIGNATURE',
  'X-PAYMENT',
  'SIGN-IN-WITH-X',
  'Access-Control-Expose-Headers',
].join(', ')

/** Credentials travel in headers that a page must set itself, so any origin may ask. */
export function allowAnyOrigin(fastify: FastifyInstance): void {
  fastify.addHook('onRequest', (_request, reply, done) => {
    reply.header('access-control-allow-origin', '*')
    reply.header('access-control-expose-headers', exposed)
    done()
  })
  fastify.options('/*', async (_request, reply) => {
    reply.header('access-control-allow-methods', 'GET, POST, PUT, PATCH, DELETE, OPTIONS')
    reply.header('access-control-allow-headers', allowed)
    reply.header('access-control-max-age', '86400')
    return reply.code(200).header('content-type', 'application/json; charset=utf-8').send('{}')
  })
}
