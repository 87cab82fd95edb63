import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Readable } from 'node:stream'
import { afterEach, describe, expect, test } from 'vitest'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { createServer, type HttpOptions } from '../../packages/server/src/http/server.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { createData } from '../support/data.ts'
import { withService } from '../support/per-engine.ts'
import { makeRawRequest, open, parseReplies, readUntilClosed } from './raw-http.ts'

const servers: ReturnType<typeof createServer>[] = []
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close()
})

const [someone, another] = ['198.51.100.1', '198.51.100.2'] as const
let printing: Promise<void> | undefined

/** Starts the service's HTTP server with shorter deadlines, and one answer of many bytes. */
async function listen(options: Partial<HttpOptions>, bytes = 0): Promise<string> {
  const fastify = createServer({
    world: realWorld,
    log: createLog('silent', { write: () => undefined }),
    finishMs: 1000,
    onFinish: () => undefined,
    trustProxy: [],
    explain: () => undefined,
    ...options,
  })
  servers.push(fastify)
  fastify.post('/echo', async (request) => request.body)
  // As where the key of a wallet's authorization came with the request.
  fastify.addHook('onRequest', async ({ context, headers }) => {
    if (headers['x-user-key'] !== undefined) context.caller = 'anonymous'
  })
  fastify.get('/small', async () => '{}')
  fastify.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, body, parsed) => parsed(null, body))
    // It begins to read the body, and refuses it.
    scope.patch<{ Body: Readable }>('/refused', async ({ body, context }) => {
      context.hasArrived = true
      await once(body, 'data')
      body.pause()
      throw new Fault('CONFLICT')
    })
    done()
  })
  fastify.get('/large', async () => 'x'.repeat(bytes))
  fastify.get('/bought', async (_, reply) => {
    reply.header('x-payment-id', 'pay_1')
    return 'x'.repeat(bytes)
  })
  // A part of it is printed, and the rest when the test says so.
  fastify.get('/printed', async (_, reply) => {
    reply.occupyOutgoing(bytes)
    await printing
    return 'x'.repeat(bytes)
  })
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  return `http://127.0.0.1:${(fastify.server.address() as AddressInfo).port}`
}

describe('slow clients', () => {
  test.each([
    ['a body that drips', 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n'],
    ['chunks that drip', 'POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n'],
    ['headers that drip', 'POST /echo HTTP/1.1\r\nHost: a\r\n'],
  ])('%s is ended by a deadline with 408, and others are served meanwhile', async (kind, head) => {
    const url = await listen({ requestTimeoutMs: 300 })
    const socket = await open(url)
    const all = readUntilClosed(socket)
    socket.write(head)
    const drip = kind.startsWith('headers') ? 'a' : kind.startsWith('chunks') ? '1\r\nx\r\n' : 'x'
    const dripping = setInterval(() => socket.writable && socket.write(drip), 20)
    try {
      expect((await fetch(`${url}/small`)).status).toBe(200)
      const [reply] = parseReplies(await all)
      expect(reply?.status).toBe(408)
      expect(JSON.parse(reply?.text ?? '')).toMatchObject({
        code: 'REQUEST_TIMEOUT',
        request_id: reply?.headers['x-request-id'],
      })
    } finally {
      clearInterval(dripping)
    }
  })

  test('a connection on which a body was refused before it was there is good for further requests', async () => {
    const url = await listen({ requestTimeoutMs: 100 })
    const sent = Array.from({ length: 20 }, async () => {
      const socket = await open(url)
      let text = ''
      socket.on('data', (chunk) => {
        text += chunk
      })
      const body = 'x'.repeat(100_000)
      socket.write(`PATCH /refused HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`)
      socket.write(body)
      await expect.poll(() => text).toContain(' 409 ')
      await new Promise((resolve) => setTimeout(resolve, 250))
      text = ''
      socket.write('GET /small HTTP/1.1\r\nHost: a\r\n\r\n')
      await expect.poll(() => text).toContain('{}')
      socket.destroy()
    })
    await Promise.all(sent)
  })

  test('large bodies that do not end hold a bounded amount of memory together, and small ones come through', async () => {
    const url = await listen({ incomingBytesMax: 300_000 })
    const head = 'POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n'
    const part = 'x'.repeat(64 * 1024 + 90_000)
    const sockets = await Promise.all(Array.from({ length: 5 }, () => open(url)))
    const all = sockets.map((socket) => readUntilClosed(socket))
    const first = Promise.race(all)
    for (const socket of sockets) socket.write(head + part)
    const [refused] = parseReplies(await first)
    expect(refused?.status).toBe(503)
    expect(refused?.headers['retry-after']).toBe('2')
    expect(JSON.parse(refused?.text ?? '')).toMatchObject({ code: 'UNAVAILABLE' })
    const echo = (bytes: number) =>
      fetch(`${url}/echo`, { method: 'POST', body: 'x'.repeat(bytes) })
    expect((await echo(60_000)).status).toBe(200)
    for (const socket of sockets) socket.destroy()
    await Promise.all(all)
    // The server learns of the closed connections in its own time.
    let status = 503
    while (status !== 200) ({ status } = await echo(300_000))
  })

  test('the rest of a body that was answered before it was there holds no memory, and counts no more', async () => {
    const url = await listen({ incomingBytesMax: 300_000 })
    const socket = await open(url)
    socket.on('error', () => undefined)
    socket.write('GET /small HTTP/1.1\r\nHost: a\r\nContent-Length: 10000000\r\n\r\n')
    await once(socket, 'data')
    await new Promise<void>((resolve) => {
      socket.write('x'.repeat(5_000_000), () => resolve())
    })
    socket.destroy()
    const body = 'x'.repeat(300_000)
    for (let at = 0; at < 5; at++) {
      expect((await fetch(`${url}/echo`, { method: 'POST', body })).status).toBe(200)
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  })

  test.each([[], ['X-User-Key: app_1']])(
    'large bodies of one address leave room for those of others %s',
    async (...more) => {
      const url = await listen({ incomingBytesMax: 600_000, trustProxy: ['127.0.0.1'] })
      const part = 'x'.repeat(64 * 1024 + 90_000)
      const sockets = await Promise.all(Array.from({ length: 6 }, () => open(url)))
      const all = sockets.map((socket) => readUntilClosed(socket))
      const names = ['POST /echo HTTP/1.1', 'Host: a', `X-Forwarded-For: ${someone}`, ...more]
      const head = [...names, 'Content-Length: 1000000', '', ''].join('\r\n')
      for (const socket of sockets) socket.write(head + part)
      const echo = (address: string) =>
        fetch(`${url}/echo`, {
          ...{ method: 'POST', body: 'x'.repeat(300_000) },
          headers: { 'x-forwarded-for': address },
        })
      const [refused] = parseReplies(await Promise.any(all))
      expect(refused?.status).toBe(503)
      expect(await poll(async () => (await echo(someone)).status, 503)).toBe(503)
      expect((await echo(another)).status).toBe(200)
      for (const socket of sockets) socket.destroy()
      await Promise.all(all)
    },
  )

  test('large answers to one address leave room for those to others, and for bought ones', async () => {
    const bytes = 100_000
    const outgoing = { bytesMax: bytes * 16, patienceMs: 60_000, bytesPerSecondMin: 1024 }
    const url = await listen({ outgoing, trustProxy: ['127.0.0.1'] }, bytes)
    let end: () => void = () => undefined
    printing = new Promise((resolve) => {
      end = resolve
    })
    const ask = async (path: string, address: string) => {
      const reply = await fetch(`${url}${path}`, { headers: { 'x-forwarded-for': address } })
      await reply.arrayBuffer()
      return reply.status
    }
    const statuses: number[] = []
    const printed = Array.from({ length: 6 }, async () => {
      statuses.push(await ask('/printed', someone))
    })
    expect(await poll(async () => statuses.length, 2)).toBe(2)
    expect(await ask('/large', someone)).toBe(503)
    expect(await ask('/large', another)).toBe(200)
    expect(await ask('/bought', someone)).toBe(200)
    end()
    await Promise.all(printed)
    expect(statuses).toEqual([503, 503, 200, 200, 200, 200])
    expect(await poll(() => ask('/large', someone), 200)).toBe(200)
  })

  test('a reader that takes nothing loses the connection, and its bytes are free again', async () => {
    const bytes = 64 * 1024 * 1024
    const outgoing = { bytesMax: bytes * 2, patienceMs: 200, bytesPerSecondMin: 1024 ** 4 }
    const url = await listen({ outgoing }, bytes)
    const socket = await open(url)
    socket.on('error', () => undefined)
    socket.pause()
    socket.write(makeRawRequest('GET /large HTTP/1.1'))
    // Only what fits into the buffers of the two ends can come; the rest waits in the server until it gives up.
    const refused = await poll(async () => (await fetch(`${url}/large`)).status, 503)
    expect(refused).toBe(503)
    expect((await fetch(`${url}/small`)).status).toBe(200)
    const again = await poll(async () => {
      const reply = await fetch(`${url}/large`)
      const text = await reply.text().catch(() => '')
      return reply.status === 200 && text.length === bytes ? 200 : reply.status
    }, 200)
    expect(again).toBe(200)
    const closed = once(socket, 'close')
    socket.resume()
    await closed
    expect(socket.bytesRead).toBeLessThan(bytes)
  })

  test('large answers past the bound are refused with 503 and Retry-After, small ones are not', async () => {
    const outgoing = { bytesMax: 100_000, patienceMs: 10_000, bytesPerSecondMin: 1024 }
    const url = await listen({ outgoing }, 100_001)
    const reply = await fetch(`${url}/large`)
    expect(reply.status).toBe(503)
    expect(reply.headers.get('retry-after')).toBe('1')
    expect(await reply.json()).toMatchObject({ code: 'UNAVAILABLE' })
    expect((await fetch(`${url}/small`)).status).toBe(200)
  })

  test('an answer counts while it is printed, and no more once nobody waits for it', async () => {
    const bytes = 200_000
    const outgoing = { bytesMax: bytes * 1.5, patienceMs: 10_000, bytesPerSecondMin: 1024 }
    const url = await listen({ outgoing }, bytes)
    let end: () => void = () => undefined
    printing = new Promise((resolve) => {
      end = resolve
    })
    const socket = await open(url)
    socket.on('error', () => undefined)
    socket.write(makeRawRequest('GET /printed HTTP/1.1'))
    expect(await poll(async () => (await fetch(`${url}/large`)).status, 503)).toBe(503)
    socket.destroy()
    expect(await poll(async () => (await fetch(`${url}/large`)).status, 200)).toBe(200)
    // Its answer comes when its reader has gone.
    end()
    await poll(async () => (await fetch(`${url}/small`)).status, 200)
    expect((await fetch(`${url}/large`)).status).toBe(200)
  })

  withService((service) => {
    test('connections that hang up in the middle cost nothing, and a whole request was stored or not', async () => {
      const data = await createData(service())
      const body = (id: string) => JSON.stringify({ root: `${data.appId}::c`, data: [{ id }] })
      const key = `X-App-Key: ${data.key}`
      for (let at = 0; at < 60; at++) {
        const socket = await open(service().url)
        socket.on('error', () => undefined)
        const whole = makeRawRequest('POST /store HTTP/1.1', [key], body(`k${at}`))
        socket.write(at % 3 === 0 ? whole : whole.slice(0, whole.length - (at % 40) - 1))
        if (at % 2 === 0) await new Promise((resolve) => setImmediate(resolve))
        if (at % 5 === 0) socket.resetAndDestroy()
        else socket.destroy()
      }
      const stored = await data.store('c', [{ id: 'last' }])
      expect(stored.status, stored.text).toBe(200)
      const { body: found } = await data.list('c')
      const ids = found.records.map(({ id }: { id: string }) => id)
      expect(new Set(ids).size).toBe(ids.length)
      // A line that was cut off never arrived, so its record is not there.
      for (const id of ids) if (id !== 'last') expect(Number(id.slice(1)) % 3).toBe(0)
      expect((await service().request('GET', '/ready')).body.ready).toBe(true)
    })
  })
})

/** Repeats a request until the answer is the expected one; gives the last answer after ten seconds. */
async function poll(ask: () => Promise<number>, wanted: number): Promise<number> {
  const end = performance.now() + 10_000
  for (;;) {
    const answer = await ask()
    if (answer === wanted || performance.now() > end) return answer
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}
