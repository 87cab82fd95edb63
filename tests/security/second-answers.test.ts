import { mkdtempSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { brotliDecompressSync } from 'node:zlib'
import { limits } from '@tollbase/contract/limits'
import { afterEach, describe, expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { compressAnswers } from '../../packages/server/src/http/compress.ts'
import { createServer, type HttpOptions } from '../../packages/server/src/http/server.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { startProgram } from '../support/program.ts'
import { open, readUntilClosed } from './raw-http.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const crumbs = '1\r\nx\r\n'.repeat(2 * limits.bodyPartsMax)

test('a body in crumbs that comes while the answer is compressed ends its connection, and not the service', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-crumbs-'))
  const program = startProgram(dataDir)
  try {
    const url = await program.url
    for (const delayMs of [2, 8, 16]) {
      const socket = await open(url)
      const all = readUntilClosed(socket)
      socket.write(
        'GET /openapi.json HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\nTransfer-Encoding: chunked\r\n\r\n',
      )
      await wait(delayMs)
      socket.write(crumbs)
      await all
    }
    expect((await fetch(`${url}/health`)).status, program.output()).toBe(200)
    expect(program.output()).not.toContain('INTERNAL')
  } finally {
    await program.end('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  }
}, 120_000)

/** Long enough that its compression takes a while. */
const text = Array.from({ length: 400_000 }, (_, at) => `${(at * 7919) % 1_000_003}`).join(' ')

/** Starts the service's HTTP server with one answer that is compressed; its log is what it wrote. */
async function listen(options: Partial<HttpOptions> = {}) {
  const lines: string[] = []
  let answered: () => void = () => undefined
  const answering = new Promise<void>((resolve) => {
    answered = resolve
  })
  const fastify = createServer({
    world: realWorld,
    log: createLog('error', { write: (line) => lines.push(line) }),
    finishMs: 10,
    onFinish: () => undefined,
    trustProxy: [],
    explain: () => undefined,
    ...options,
  })
  closers.push(() => fastify.close())
  compressAnswers(fastify)
  fastify.get('/long', async (_request, reply) => {
    reply.header('content-type', 'text/plain')
    // After the hooks, which begin to compress it.
    setImmediate(answered)
    return text
  })
  // A fault of the service itself: it writes where an answer is on its way.
  fastify.get('/twice', async (_request, reply) => {
    setImmediate(() => reply.raw.writeHead(200, { connection: 'close' }).write('first'))
    reply.header('content-type', 'text/plain')
    return text
  })
  fastify.get('/small', async () => '{}')
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(fastify.server.address() as AddressInfo).port}`
  const ask = async (...headers: readonly string[]) => {
    const socket = await open(url)
    const parts: Buffer[] = []
    socket.on('error', () => undefined).on('data', (part) => parts.push(part))
    const closed = new Promise((resolve) => socket.once('close', resolve))
    const head = ['GET /long HTTP/1.1', 'Host: a', 'Accept-Encoding: br', ...headers]
    socket.write(`${head.join('\r\n')}\r\n\r\n`)
    await answering
    return { socket, whole: closed.then(() => Buffer.concat(parts)) }
  }
  return { fastify, url, lines, ask }
}

/** Splits one answer into its head and its text. */
function parseLong(answer: Buffer) {
  const end = answer.indexOf('\r\n\r\n')
  return {
    head: answer.subarray(0, end).toString(),
    text: brotliDecompressSync(answer.subarray(end + 4)).toString(),
  }
}

describe('while an answer is compressed', () => {
  test('a server that stops sends it, and nothing else', async () => {
    const { fastify, lines, ask } = await listen()
    const { whole } = await ask()
    await fastify.close()
    const answer = parseLong(await whole)
    expect(answer.head).toMatch(/^HTTP\/1\.1 200 /)
    expect(answer.head.toLowerCase()).toContain('connection: close')
    expect(answer.text).toBe(text)
    expect(lines).toEqual([])
  })

  test.each([
    ['too many small chunks', ['Transfer-Encoding: chunked'], crumbs],
    ['more bytes than there is room for', ['Content-Length: 1000000'], 'x'.repeat(200_000)],
  ])('a body of %s ends its connection, and others are served', async (_, headers, body) => {
    const { url, lines, ask } = await listen({ incomingBytesMax: 1_000 })
    const { socket, whole } = await ask(...headers)
    socket.write(body)
    expect((await whole).toString()).not.toMatch(/ (400|503) /)
    expect((await fetch(`${url}/small`)).status).toBe(200)
    expect(lines).toEqual([])
  })

  test('another one that is written by mistake ends its connection, and is in the log', async () => {
    const { url, lines } = await listen()
    const socket = await open(url)
    const all = readUntilClosed(socket)
    socket.write('GET /twice HTTP/1.1\r\nHost: a\r\nAccept-Encoding: br\r\n\r\n')
    expect(await all).toContain('first')
    expect((await fetch(`${url}/small`)).status).toBe(200)
    expect(lines.join('')).toContain('ERR_HTTP_HEADERS_SENT')
  })
})
