import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

/** Serves answers in JSON on a free port, and prints it: the least that a server by hand has around its work. */
export function serve(answer: (request: IncomingMessage, body: string) => Promise<string>): void {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
      answer(request, String(body)).then(
        (text) => send(response, 200, text),
        (error) => send(response, 500, String(error)),
      )
    })
  })
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    process.stdout.write(
      `listening on ${typeof address === 'object' && address !== null ? address.port : 0}\n`,
    )
  })
  // An end by a signal would leave no profile behind.
  process.once('SIGTERM', () => process.exit(0))
}

function send(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  })
  response.end(text)
}
