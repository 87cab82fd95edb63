import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'

export type Load = {
  readonly port: number
  readonly connections: number
  /** The complete HTTP requests; each is sent once, on the next connection that is free. */
  readonly requests: readonly Buffer[]
  /** The status that every reply must have. */
  readonly status: number
  /** The interval between two requests of one connection, where the earlier reply does not take longer. */
  readonly everyMs?: number
}

export type LoadResult = {
  readonly requests: number
  /** The number of replies with another status, with the first of them for the error text. */
  readonly failures: number
  readonly firstFailure: string | undefined
  readonly seconds: number
  readonly perSecond: number
  /** Milliseconds. */
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

/**
 * Makes the bytes of one request. They are made before the clock starts, so that the generator costs the servers
 * little.
 */
export function makeHttpRequest(
  path: string,
  body: string,
  headers: Readonly<Record<string, string>> = {},
): Buffer {
  const lines = Object.entries({
    host: '127.0.0.1',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`)
}

/** Makes the bytes of a request without a body. */
export function makeHttpGet(path: string): Buffer {
  return Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
}

/** Sends all requests over kept-open connections, each waiting for its reply (closed loop). */
export async function drive(load: Load): Promise<LoadResult> {
  const sockets = await Promise.all(Array.from({ length: load.connections }, () => open(load.port)))
  const times: number[] = []
  let next = 0
  let failures = 0
  let firstFailure: string | undefined
  const startedAt = performance.now()
  await Promise.all(
    sockets.map(async (socket) => {
      const exchange = exchanger(socket)
      for (let request = load.requests[next++]; request; request = load.requests[next++]) {
        const sentAt = performance.now()
        const reply = await exchange(request)
        times.push(performance.now() - sentAt)
        if (reply.status !== load.status) {
          failures += 1
          firstFailure ??= `${reply.headers}${reply.body.toString('utf8', 0, 500)}`
        }
        if (load.everyMs !== undefined) await setTimeout(sentAt + load.everyMs - performance.now())
      }
    }),
  )
  const seconds = (performance.now() - startedAt) / 1000
  for (const socket of sockets) socket.destroy()
  times.sort((a, b) => a - b)
  const at = (share: number) => times[Math.floor((times.length - 1) * share)] ?? 0
  const requests = times.length
  return {
    requests,
    failures,
    firstFailure,
    seconds,
    perSecond: requests / seconds,
    p50: at(0.5),
    p95: at(0.95),
    p99: at(0.99),
  }
}

/** Returns the result of a load of which every request must succeed. */
export function requireNoFailure(result: LoadResult): LoadResult {
  if (result.failures > 0)
    throw new Error(`${result.failures} of ${result.requests} failed: ${result.firstFailure}`)
  return result
}

export type Reply = {
  readonly status: number
  readonly headers: string
  readonly body: Buffer
}

/** Sends one request on a connection of its own. */
export async function sendOnce(port: number, request: Buffer): Promise<Reply> {
  const socket = await open(port)
  try {
    return await exchanger(socket)(request)
  } finally {
    socket.destroy()
  }
}

function open(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, noDelay: true })
    socket.once('connect', () => resolve(socket))
    socket.once('error', reject)
  })
}

const headEnd = Buffer.from('\r\n\r\n')

/** Sends a request and reads its reply; replies must state their length, which all of these servers do. */
function exchanger(socket: Socket): (request: Buffer) => Promise<Reply> {
  let waiting: { resolve: (reply: Reply) => void; reject: (error: Error) => void } | undefined
  let received: Buffer = Buffer.alloc(0)
  let wanted = 0
  const end = (error: Error) => waiting?.reject(error)
  socket.on('error', end)
  socket.on('close', () => end(new Error('the server closed the connection')))
  socket.on('data', (chunk) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk])
    if (received.length < wanted) return
    const bodyAt = received.indexOf(headEnd) + headEnd.length
    if (bodyAt < headEnd.length) return
    const headers = received.toString('latin1', 0, bodyAt)
    const length = /\r\ncontent-length: *(\d+)/i.exec(headers)?.[1]
    if (length === undefined) return end(new Error(`a reply without content-length: ${headers}`))
    wanted = bodyAt + Number(length)
    if (received.length < wanted) return
    const reply = { status: Number(headers.slice(9, 12)), headers, body: received.subarray(bodyAt) }
    received = Buffer.alloc(0)
    wanted = 0
    waiting?.resolve(reply)
  })
  return (request) =>
    new Promise((resolve, reject) => {
      waiting = { resolve, reject }
      socket.write(request)
    })
}
