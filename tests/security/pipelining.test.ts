import type { AddressInfo } from 'node:net'
import { limits } from '@tollbase/contract/limits'
import { afterEach, expect, test } from 'vitest'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { createServer, type HttpOptions } from '../../packages/server/src/http/server.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { open, parseReplies, readUntilClosed } from './raw-http.ts'

const servers: ReturnType<typeof createServer>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

/** Starts the service's HTTP server with a route that answers when `release` is called. */
async function listen(options: Partial<HttpOptions> = {}) {
  let held: (() => void)[] = []
  let pauses: (() => void)[] = []
  let finished = 0
  const fastify = createServer({
    world: { ...realWorld, sleep: () => new Promise((resolve) => pauses.push(resolve)) },
    log: createLog('silent', { write: () => undefined }),
    finishMs: 1_000,
    onFinish: () => {
      finished += 1
    },
    trustProxy: [],
    explain: () => undefined,
    ...options,
  })
  servers.push(fastify)
  fastify.get('/held', () => new Promise((resolve) => held.push(() => resolve('{}'))))
  fastify.post('/echo', async (request) => request.body)
  fastify.get('/large', async () => 'x'.repeat(100_000))
  fastify.get('/limited', async () => {
    throw new Fault('RATE_LIMITED')
  })
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(fastify.server.address() as AddressInfo).port}`
  const release = () => {
    for (const end of held.concat(pauses)) end()
    held = []
    pauses = []
  }
  const count = () => ({ held: held.length, pauses: pauses.length, finished })
  return { url, release, count }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`
const last = (path: string) => `GET ${path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`
const post = (bytes: number) =>
  `POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: ${bytes}\r\n\r\n${'x'.repeat(bytes)}`

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 2))
}

test('requests that were sent behind another one on its connection are worked on one after the other', async () => {
  const { url, release, count } = await listen()
  const socket = await open(url)
  const all = readUntilClosed(socket)
  socket.write(get('/held').repeat(3) + post(200_000) + last('/held'))
  for (let n = 0; n < 4; n++) {
    await until(() => count().held > 0)
    expect(count().held).toBe(1)
    // Another connection is not held up.
    expect((await fetch(`${url}/echo`, { method: 'POST', body: 'x' })).status).toBe(200)
    expect(count().held).toBe(1)
    release()
  }
  const replies = parseReplies(await all)
  expect(replies.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
  expect(replies[3]?.text).toHaveLength(200_000)
})

test('requests that are refused one behind the other have each their own pause', async () => {
  const { url, release, count } = await listen()
  const socket = await open(url)
  const all = readUntilClosed(socket)
  socket.write(get('/limited').repeat(9) + last('/limited'))
  for (let n = 0; n < 10; n++) {
    await until(() => count().pauses > 0)
    expect(count()).toMatchObject({ pauses: 1, finished: n })
    release()
  }
  expect(parseReplies(await all).map(({ status }) => status)).toEqual(Array(10).fill(429))
})

test('at most requestsBehindMax requests wait behind another one; one more closes their connection', async () => {
  const { url, release, count } = await listen()
  const patient = await open(url)
  const answers = readUntilClosed(patient)
  patient.write(get('/held') + post(1).repeat(limits.requestsBehindMax - 1) + last('/large'))
  await until(() => count().held === 1)
  const greedy = await open(url)
  const nothing = readUntilClosed(greedy)
  greedy.write(get('/held') + post(1).repeat(limits.requestsBehindMax + 1))
  expect(await nothing).toBe('')
  release()
  expect(parseReplies(await answers)).toHaveLength(limits.requestsBehindMax + 1)
})

test('a client that hangs up leaves nothing of the requests that it sent behind another one', async () => {
  const bytesMax = 300_000
  const outgoing = { bytesMax: 2 * bytesMax, patienceMs: 60_000, bytesPerSecondMin: 1024 }
  const { url, release, count } = await listen({ incomingBytesMax: bytesMax, outgoing })
  for (let n = 0; n < 4; n++) {
    const { finished } = count()
    const socket = await open(url)
    socket.on('error', () => undefined)
    socket.write(get('/held') + post(200_000) + get('/large'))
    await until(() => count().held === 1)
    socket.resetAndDestroy()
    release()
    await until(() => count().finished > finished)
  }
  const reply = await fetch(`${url}/echo`, { method: 'POST', body: 'x'.repeat(bytesMax) })
  expect(reply.status).toBe(200)
  expect(await reply.text()).toHaveLength(bytesMax)
})
