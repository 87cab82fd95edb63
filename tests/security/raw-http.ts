import { connect, type Socket } from 'node:net'

export type RawReply = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly text: string
}

/** A connection on which a test writes what no HTTP client would. */
export function open(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => resolve(socket))
    socket.once('error', reject)
  })
}

/** Writes the text, and reads until the server closes; all replies that came, in their order. */
export async function exchange(url: string, text: string | Buffer): Promise<RawReply[]> {
  const socket = await open(url)
  const done = readUntilClosed(socket)
  socket.write(text)
  return parseReplies(await done)
}

/** Reads everything that comes until the connection is closed, by either side. */
export function readUntilClosed(socket: Socket): Promise<string> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk) => chunks.push(chunk))
  // A server that refuses a request while it is being sent may reset the connection.
  socket.on('error', () => undefined)
  return new Promise((resolve) => {
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
  })
}

/** Makes a request whose reply ends the connection. */
export function makeRawRequest(
  line: string,
  headers: readonly string[] = [],
  body: string | undefined = undefined,
): string {
  const length = body === undefined ? [] : [`Content-Length: ${Buffer.byteLength(body)}`]
  return [line, 'Host: localhost', 'Connection: close', ...length, ...headers, '', body ?? ''].join(
    '\r\n',
  )
}

export function parseReplies(text: string): RawReply[] {
  const replies: RawReply[] = []
  let rest = text
  while (rest.startsWith('HTTP/1.1 ')) {
    const end = rest.indexOf('\r\n\r\n')
    const [line = '', ...lines] = rest.slice(0, end).split('\r\n')
    const headers = Object.fromEntries(
      lines.map((each) => {
        const colon = each.indexOf(':')
        return [each.slice(0, colon).toLowerCase(), each.slice(colon + 1).trim()]
      }),
    )
    const body = Buffer.from(rest.slice(end + 4))
    const length = Number(headers['content-length'] ?? body.length)
    replies.push({
      status: Number(line.split(' ')[1]),
      headers,
      text: body.subarray(0, length).toString(),
    })
    rest = body.subarray(length).toString()
  }
  return replies
}
