import { createServer } from 'node:http'

/**
 * Refuses every request for its length before its body has come, and closes the connection: nothing can do less for a
 * request that is not wanted.
 */
const server = createServer((_, response) => {
  response.writeHead(413, { 'content-length': 0, connection: 'close' }).end()
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  process.stdout.write(`listening on ${port}\n`)
})
