import { once } from 'node:events'
import { createServer } from 'node:net'
import type { FastifyInstance } from 'fastify'

/** Port 0 means any free one. */
type Address = { readonly host: string; readonly port: number }

/** Fails as `listen` would, so that a taken port, or a wrong host, is reported before a database and a chain are started. */
export async function tryListening({ host, port }: Address): Promise<void> {
  const server = createServer()
  server.listen({ host, port })
  await once(server, 'listening')
  server.close()
  await once(server, 'close')
}

/** Listens and returns the URL, without a trailing slash. */
export async function listen(fastify: FastifyInstance, { host, port }: Address): Promise<string> {
  await fastify.listen({ host, port })
  const address = fastify.server.address()
  const given = typeof address === 'object' && address !== null ? address.port : port
  return `http://${host.includes(':') ? `[${host}]` : host}:${given}`
}
