import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { afterEach, expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { createServer } from '../../packages/server/src/http/server.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { open, parseReplies, readUntilClosed } from './raw-http.ts'

const servers: ReturnType<typeof createServer>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** Starts the service's HTTP server with a route that takes a moment; it counts what began there and what ended. */
async function listen() {
  const counts = { begun: 0, ended: 0 }
  const fastify = createServer({
    world: realWorld,
    log: createLog('silent', { write: () => undefined }),
    finishMs: 1_000,
    onFinish: ({ url }) => {
      if (url === '/slow') counts.ended += 1
    },
    trustProxy: [],
    explain: () => undefined,
  })
  servers.push(fastify)
  fastify.get('/slow', async () => {
    counts.begun += 1
    await wait(20)
    return 'x'.repeat(200_000)
  })
  fastify.get('/changed', async (_request, reply) => reply.code(304).send())
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(fastify.server.address() as AddressInfo).port}`
  return { fastify, url, counts }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`

test('a body whose sender reset the connection, so that its address is not known any more, is dropped', async () => {
  const { fastify, url } = await listen()
  let isReset = true
  fastify.server.prependListener('connection', (socket) => {
    if (isReset) Object.defineProperty(socket, 'remoteAddress', { value: undefined })
  })
  for (const path of ['/nowhere', '/slow']) {
    const socket = await open(url)
    const all = readUntilClosed(socket)
    socket.write(`POST ${path} HTTP/1.1\r\nHost: a\r\nContent-Length: 5000000\r\n\r\n`)
    socket.write('x'.repeat(150_000))
    expect(await all).toBe('')
  }
  isReset = false
  expect((await fetch(`${url}/slow`)).status).toBe(200)
})

/** A request whose connection Node, or the service, ends: where it is, how often it is sent, and all that is sent. */
const cutOff = [
  ['behind one without Host, which Node answers', 3, `GET / HTTP/1.1\r\n\r\n${get('/slow')}`],
  [
    'behind one of HTTP/1.0 whose answer has no length',
    3,
    `GET /changed HTTP/1.0\r\nConnection: keep-alive\r\n\r\n${get('/slow')}`,
  ],
  [
    'behind a body at an address that cannot be decoded',
    3,
    `POST /%zz HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${get('/slow')}`,
  ],
  [
    'with garbage behind it, and one that cannot be decoded before it',
    1,
    `${get('/%zz')}${get('/slow')}garbage\r\n\r\n`,
  ],
] as const

test.for(cutOff)('nothing is held for a request %s', async ([, times, bytes]) => {
  const { url, counts } = await listen()
  for (let n = 0; n < times; n++) {
    const socket = await open(url)
    const all = readUntilClosed(socket)
    socket.write(bytes)
    await all
  }
  await wait(200)
  expect(counts.ended).toBe(counts.begun)
})

test('a request behind one that cannot be decoded is answered', async () => {
  const { url, counts } = await listen()
  const socket = await open(url)
  const all = readUntilClosed(socket)
  socket.write(get('/%zz') + get('/slow').replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'))
  expect(parseReplies(await all).map(({ status }) => status)).toEqual([400, 200])
  expect(counts).toEqual({ begun: 1, ended: 1 })
})
