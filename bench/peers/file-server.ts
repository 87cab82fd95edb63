import { createReadStream, createWriteStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'

/** The plainest server of a file: a body is streamed into it and synced before the answer, and streamed from it. */
const { folder }: { readonly folder: string } = JSON.parse(process.argv[2] ?? '{}')
const file = join(folder, 'file')

const server = createServer((request, response) => {
  const answer = request.method === 'PUT' ? put(request, response) : get(response)
  answer.catch((error) => response.destroy(error))
})
server.listen(0, '127.0.0.1', () => {
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  process.stdout.write(`listening on ${port}\n`)
})

async function put(request: IncomingMessage, response: ServerResponse): Promise<void> {
  await pipeline(request, createWriteStream(file, { flush: true }))
  response.writeHead(201, { 'content-length': 2 }).end('{}')
}

async function get(response: ServerResponse): Promise<void> {
  const { size } = await stat(file)
  response.writeHead(200, { 'content-length': size })
  await pipeline(createReadStream(file), response)
}
