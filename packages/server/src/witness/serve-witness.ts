import { createServer } from 'node:http'
import { SetupError } from '../base/setup-error.ts'
import type { Witness } from './witness.ts'

/**
 * Serves what a witness signed to everybody, as JSON: its name and key, and of each log the origin and the newest
 * checkpoint with log's and witness's signatures.
 */
export function serveWitness(
  witness: Witness,
  at: { readonly host: string; readonly port: number },
): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const server = createServer((request, reply) => {
    const isAsked = request.method === 'GET' && request.url === '/'
    const body = isAsked ? describeWitness(witness) : { error: 'GET / is all there is' }
    reply.writeHead(isAsked ? 200 : 404, { 'content-type': 'application/json' })
    reply.end(`${JSON.stringify(body)}\n`)
  })
  server.requestTimeout = 10_000
  server.maxConnections = 64
  return new Promise((resolve, reject) => {
    server.on('error', (error) => reject(explainListenError(error, at)))
    server.listen(at.port, at.host, () => {
      const address = server.address()
      const port = typeof address === 'object' ? address?.port : at.port
      const close = () =>
        new Promise<void>((done) => {
          server.close(() => done())
          server.closeAllConnections()
        })
      resolve({ url: `http://${at.host}:${port}`, close })
    })
  })
}

function explainListenError(error: Error, { host, port }: { host: string; port: number }): Error {
  const code = 'code' in error ? error.code : undefined
  const reason =
    code === 'EADDRINUSE' ? 'another program listens there already; choose another' : error.message
  return new SetupError(`--listen ${host}:${port}: ${reason}`)
}

function describeWitness(witness: Witness) {
  const { name, vkey: key } = witness
  const logs = witness.listKept().map(({ origin, cosigned, contradiction }) => ({
    origin,
    checkpoint: cosigned,
    ...(contradiction && { contradiction }),
  }))
  return { name, key, logs }
}
