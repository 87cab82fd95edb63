import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'

type Answer = (response: ServerResponse, request: IncomingMessage) => void

/** A request as the upstream got it. */
export type Got = {
  readonly method: string | undefined
  readonly url: string | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A seller's API on this machine. */
export type TestUpstream = {
  readonly url: string
  readonly port: number
  /** The requests until now. */
  readonly got: Got[]
  /** Sets how it answers from now on; JSON with the number of the request by default. */
  readonly answer: (answer: Answer | undefined) => void
  readonly close: () => void
}

export async function startUpstream(): Promise<TestUpstream> {
  const got: Got[] = []
  const byNumber: Answer = (response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ n: got.length }))
  }
  let answer = byNumber
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const chunk of request) body += chunk
    got.push({ method: request.method, url: request.url, headers: request.headers, body })
    answer(response, request)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    got,
    answer: (next) => {
      answer = next ?? byNumber
    },
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
