import { once } from 'node:events'
import type { AddressInfo, Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { limits } from '@tollbase/contract/limits'
import { afterEach, describe, expect, test } from 'vitest'
import { Fault } from '../../packages/server/src/base/fault.ts'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { createServer } from '../../packages/server/src/http/server.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { open, parseReplies, readUntilClosed } from './raw-http.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** The most chunks of one byte that a body may have. */
const onesMax = Math.floor(
  (limits.bodyPartsMax * limits.bytesOfPartMin) / (limits.bytesOfPartMin - 1),
)
const one = '1\r\nx\r\n'
const end = '0\r\n\r\n'

/** Starts the service's HTTP server; `work` is what its slow answer waits for. */
async function listen(work?: Promise<void>): Promise<string> {
  const fastify = createServer({
    world: realWorld,
    log: createLog('silent', { write: () => undefined }),
    finishMs: 1000,
    onFinish: () => undefined,
    trustProxy: [],
    explain: () => undefined,
  })
  closers.push(() => fastify.close())
  fastify.post('/count', async ({ body }) => `${(body as Buffer).length}`)
  const refuse = async () => {
    throw new Fault('RATE_LIMITED')
  }
  fastify.post('/refused', { onRequest: refuse }, async () => '{}')
  fastify.get('/slow', async () => {
    await work
    return '{}'
  })
  fastify.register((scope, _options, done) => {
    scope.removeAllContentTypeParsers()
    scope.addContentTypeParser('*', (_request, body, parsed) => parsed(null, body))
    scope.patch<{ Body: Readable }>('/stream', async ({ body }) => {
      let bytes = 0
      for await (const chunk of body) bytes += chunk.length
      return `${bytes}`
    })
    scope.patch<{ Body: Readable }>('/unread', async () => {
      await work
      return '{}'
    })
    done()
  })
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  return `http://127.0.0.1:${(fastify.server.address() as AddressInfo).port}`
}

const makeHead = (line: string, close = true) =>
  `${line} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n${close ? 'Connection: close\r\n' : ''}\r\n`

/** Resolves once the server has closed the connection, be it by a reset. */
function awaitClose(socket: Socket): Promise<void> {
  socket.on('error', () => undefined)
  return new Promise((resolve) => socket.once('close', () => resolve()))
}

async function send(url: string, text: string) {
  const socket = await open(url)
  const all = readUntilClosed(socket)
  socket.write(text)
  return { socket, replies: parseReplies(await all) }
}

describe('bodies in small chunks', () => {
  test.each(['POST /count', 'PATCH /stream'])(
    '%s takes a body of as many chunks of one byte as there may be, and refuses one more',
    async (line) => {
      const url = await listen()
      const most = await send(url, makeHead(line) + one.repeat(onesMax) + end)
      expect(most.replies).toMatchObject([{ status: 200, text: `${onesMax}` }])
      const past = await send(url, makeHead(line, false) + one.repeat(onesMax + 1))
      expect(past.replies).toMatchObject([{ status: 400 }])
      expect(past.replies[0]?.text).toContain('too many small chunks')
    },
  )

  test('chunks of 64 bytes are taken, however many there are', async () => {
    const url = await listen()
    const count = 4 * limits.bodyPartsMax
    const chunk = `40\r\n${'x'.repeat(64)}\r\n`
    const { replies } = await send(url, makeHead('POST /count') + chunk.repeat(count) + end)
    expect(replies).toMatchObject([{ status: 200, text: `${64 * count}` }])
  })

  test('chunks count while nobody reads them: before their request has its turn, and before its work begins', async () => {
    let finish: () => void = () => undefined
    const work = new Promise<void>((resolve) => {
      finish = resolve
    })
    const url = await listen(work)
    const behind = await open(url)
    const closed = awaitClose(behind)
    behind.resume()
    behind.write('GET /slow HTTP/1.1\r\nHost: a\r\n\r\n')
    behind.write(makeHead('POST /count') + one.repeat(2 * onesMax))
    const { replies } = await send(url, makeHead('PATCH /unread', false) + one.repeat(2 * onesMax))
    expect(replies).toMatchObject([{ status: 400 }])
    await closed
    finish()
  })

  test.each([
    ['PATCH /unread', ' 200 '],
    ['POST /refused', ' 429 '],
  ])(
    'the rest of the body of %s, once answered, is not taken in small chunks either',
    async (line, status) => {
      const url = await listen()
      const socket = await open(url)
      const closed = awaitClose(socket)
      socket.write(`${makeHead(line, false)}${one}`)
      const [answer] = await once(socket, 'data')
      expect(String(answer)).toContain(status)
      socket.write(one.repeat(4 * onesMax))
      await closed
    },
  )

  test.each([
    ['with an expectation that is not known', 'POST /refused', 'Expect: more\r\n'],
    ['at an address that cannot be decoded', 'POST /%zz', ''],
  ])('a body %s is not taken in small chunks for ever', async (_, line, header) => {
    const url = await listen()
    const socket = await open(url)
    const closed = awaitClose(socket)
    socket.resume()
    socket.write(`${makeHead(line, false).trimEnd()}\r\n${header}\r\n`)
    const sending = setInterval(() => socket.writable && socket.write(one.repeat(1_000)), 10)
    try {
      await closed
    } finally {
      clearInterval(sending)
    }
  })

  test('an expectation that is not known is no reason to refuse a request', async () => {
    const url = await listen()
    const head = `${makeHead('POST /count').trimEnd()}\r\nExpect: more\r\n\r\n`
    const { replies } = await send(url, `${head}${one}${end}`)
    expect(replies).toMatchObject([{ status: 200, text: '1' }])
  })

  test('a connection on which a body in chunks was answered unread is good for further requests', async () => {
    const url = await listen()
    const socket = await open(url)
    const all = readUntilClosed(socket)
    const chunk = `ffff\r\n${'x'.repeat(0xffff)}\r\n`
    for (const line of ['PATCH /unread', 'POST /refused', 'POST /count'])
      socket.write(`${makeHead(line, line === 'POST /count')}${chunk.repeat(20)}${end}`)
    const replies = parseReplies(await all)
    expect(replies.map(({ status }) => status)).toEqual([200, 429, 200])
    expect(replies.at(-1)?.text).toBe(`${20 * 0xffff}`)
  })
})
