import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import { limits } from '@tollbase/contract/limits'
import { afterEach, expect, test } from 'vitest'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { createServer } from '../../packages/server/src/http/server.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { open, parseReplies, readUntilClosed } from './raw-http.ts'

const servers: ReturnType<typeof createServer>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** Starts the service's HTTP server in a world whose pauses end when `release` is called. */
async function listen({ finishMs = 1_000, refusalsWaitingMax = 1_000 } = {}) {
  let pauses: (() => void)[] = []
  const fastify = createServer({
    world: { ...realWorld, sleep: () => new Promise((resolve) => pauses.push(resolve)) },
    log: createLog('silent', { write: () => undefined }),
    finishMs,
    refusalsWaitingMax,
    onFinish: () => undefined,
    trustProxy: [],
    explain: () => undefined,
  })
  servers.push(fastify)
  fastify.get('/small', async () => '{}')
  fastify.get('/wrong', async () => {
    throw new Fault('VALIDATION_FAILED')
  })
  fastify.post('/wrong', async () => {
    throw new Fault('VALIDATION_FAILED')
  })
  const refuse = async () => {
    throw new Fault('UNAUTHORIZED')
  }
  fastify.post('/closed', { onRequest: refuse }, async () => '{}')
  fastify.get('/limited', async () => {
    throw new Fault('RATE_LIMITED')
  })
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(fastify.server.address() as AddressInfo).port}`
  const untilWaiting = async (count: number) => {
    while (pauses.length < count) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const release = () => {
    for (const end of pauses) end()
    pauses = []
  }
  return { fastify, url, untilWaiting, release }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const last = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
const getStatus = async (url: string, body?: string) => {
  const reply = await fetch(url, body === undefined ? {} : { method: 'POST', body })
  await reply.text()
  return reply.status
}

test('a refusal of too much waits for its pause, with all that came behind it on its connection, and holds up nobody else', async () => {
  const { url, untilWaiting, release } = await listen()
  const socket = await open(url)
  const all = readUntilClosed(socket)
  socket.write(get('/limited') + get('/small'))
  await untilWaiting(1)
  expect(await getStatus(`${url}/small`)).toBe(200)
  expect(await getStatus(`${url}/wrong`)).toBe(400)
  expect(await getStatus(`${url}/wrong`, 'x'.repeat(limits.bodyBytesAtOnce))).toBe(400)
  expect(socket.bytesRead).toBe(0)
  release()
  socket.write(last('/small'))
  expect(parseReplies(await all).map(({ status }) => status)).toEqual([429, 200, 200])
})

test('a refusal of a long body waits for its pause', async () => {
  const { url, untilWaiting, release } = await listen()
  const refused = getStatus(`${url}/wrong`, 'x'.repeat(limits.bodyBytesAtOnce + 1))
  await untilWaiting(1)
  release()
  expect(await refused).toBe(400)
})

test('a refusal that does not wait for a long body waits for its pause, and the connection can be used again', async () => {
  const { fastify, url, untilWaiting, release } = await listen()
  const accepted: Socket[] = []
  fastify.server.on('connection', (socket: Socket) => accepted.push(socket))
  const socket = await open(url)
  const all = readUntilClosed(socket)
  const length = limits.bodyBytesMax
  socket.write(`POST /closed HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`)
  await untilWaiting(1)
  socket.write('x'.repeat(length))
  for (let at = 0; at < 20; at++) expect(await getStatus(`${url}/small`)).toBe(200)
  expect(accepted[0]?.bytesRead).toBeLessThan(4 * limits.bodyBytesAtOnce)
  release()
  socket.write('POST /closed HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  await untilWaiting(1)
  release()
  socket.write(`1\r\nx\r\n0\r\n\r\n${last('/small')}`)
  expect(parseReplies(await all).map(({ status }) => status)).toEqual([401, 401, 200])
  expect(await getStatus(`${url}/closed`, 'x'.repeat(limits.bodyBytesAtOnce))).toBe(401)
}, 20_000)

test.each(['/nowhere', '/%zz'])('a long body to %s waits for its pause, too', async (path) => {
  const { url, untilWaiting, release } = await listen()
  const refused = getStatus(url + path, 'x'.repeat(limits.bodyBytesAtOnce + 1))
  await untilWaiting(1)
  release()
  expect([400, 404]).toContain(await refused)
})

test('nothing more is read of a body that is refused for its length, before its pause and in it', async () => {
  const { fastify, url, untilWaiting, release } = await listen()
  const accepted: Socket[] = []
  fastify.server.on('connection', (socket: Socket) => accepted.push(socket))
  const socket = await open(url)
  socket.on('error', () => undefined)
  const answer = once(socket, 'data')
  const length = limits.bodyBytesMax + 1
  socket.write(`POST /wrong HTTP/1.1\r\nHost: a\r\nContent-Length: ${length}\r\n\r\n`)
  await untilWaiting(1)
  const sent = new Promise((resolve) => socket.write('x'.repeat(length), resolve))
  // The system hands over the bytes that it has in turns, and these requests come between them.
  for (let at = 0; at < 20; at++) expect(await getStatus(`${url}/small`)).toBe(200)
  expect(accepted[0]?.bytesRead).toBeLessThan(4 * limits.bodyBytesAtOnce)
  release()
  expect(String(await answer)).toMatch(/^HTTP\/1.1 413 .*connection: close/s)
  await sent
}, 20_000)

test('no more than refusalsWaitingMax refusals wait at once; the next one is sent', async () => {
  const { url, untilWaiting, release } = await listen({ refusalsWaitingMax: 20 })
  const sockets = await Promise.all(Array.from({ length: 20 }, () => open(url)))
  const all = sockets.map((socket) => readUntilClosed(socket))
  for (const socket of sockets) socket.write(last('/limited'))
  await untilWaiting(20)
  expect(await getStatus(`${url}/limited`)).toBe(429)
  expect(sockets.every(({ bytesRead }) => bytesRead === 0)).toBe(true)
  release()
  for (const one of all) expect(parseReplies(await one)).toHaveLength(1)
  const again = getStatus(`${url}/limited`)
  await untilWaiting(1)
  release()
  expect(await again).toBe(429)
})

test('a client that hangs up in the pause does no harm', async () => {
  const { url, untilWaiting, release } = await listen()
  const socket = await open(url)
  socket.on('error', () => undefined)
  socket.write(get('/limited'))
  await untilWaiting(1)
  socket.resetAndDestroy()
  release()
  expect(await getStatus(`${url}/small`)).toBe(200)
})

test('a server that stops waits for no pause: what is held is answered by its deadline', async () => {
  const { fastify, url, untilWaiting, release } = await listen({ finishMs: 50 })
  const socket = await open(url)
  const all = readUntilClosed(socket)
  socket.write(get('/limited'))
  await untilWaiting(1)
  await fastify.close()
  const replies = parseReplies(await all)
  expect(replies.map(({ status }) => status)).toEqual([503])
  release()
})
