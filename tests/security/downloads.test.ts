import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { limits } from '@tollbase/contract/limits'
import { afterEach, describe, expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import type { FileBody } from '../../packages/server/src/http/reply.ts'
import { sendFile } from '../../packages/server/src/http/send-file.ts'
import { createServer } from '../../packages/server/src/http/server.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { makeRawRequest, open, parseReplies, readUntilClosed } from './raw-http.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

/** Serves a file that does not end; gives the status of an answer to an address, whose reader holds the file. */
async function listen() {
  const fastify = createServer({
    world: realWorld,
    log: createLog('silent', { write: () => undefined }),
    finishMs: 1000,
    onFinish: () => undefined,
    trustProxy: ['127.0.0.1'],
    explain: () => undefined,
    outgoing: {
      ...{ bytesMax: 100_000, patienceMs: 600_000, bytesPerSecondMin: 1 },
      downloads: { max: 8, ofHolderMax: 4, forNew: 2 },
    },
  })
  fastify.get('/file', async () => {
    const file = new Readable({ read: () => undefined })
    file.push('x')
    return file
  })
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  const { port } = fastify.server.address() as AddressInfo
  const controller = new AbortController()
  closers.push(() => {
    controller.abort()
    return fastify.close()
  })
  return async (address: string) => {
    const headers = { 'x-forwarded-for': address }
    const { signal } = controller
    return (await fetch(`http://127.0.0.1:${port}/file`, { headers, signal })).status
  }
}

test('the addresses of one IPv6 network hold as many files as one address, and some are for addresses that hold none', async () => {
  const get = await listen()
  for (let host = 1; host <= 4; host++) expect(await get(`2001:db8:0:1::${host}`)).toBe(200)
  expect(await get('2001:db8:0:1::5')).toBe(503)
  for (let at = 0; at < 2; at++) expect(await get('192.0.2.1')).toBe(200)
  // The last quarter is for others.
  expect(await get('192.0.2.1')).toBe(503)
  expect(await get('192.0.2.2')).toBe(200)
  expect(await get('192.0.2.2')).toBe(503)
  expect(await get('2001:db8:0:2::1')).toBe(200)
  expect(await get('192.0.2.3')).toBe(503)
})

/** Serves files that do not end: `/early` sends its own at once, `/late` and `/stream` when the test says so. */
async function listenLate() {
  const lines: string[] = []
  const state = { asked: 0, sent: 0, opened: 0 }
  let begin: () => void = () => undefined
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const fastify = createServer({
    world: realWorld,
    log: createLog('error', { write: (line) => lines.push(line) }),
    finishMs: 10,
    onFinish: () => undefined,
    trustProxy: [],
    explain: () => undefined,
    outgoing: {
      ...{ bytesMax: 100_000, patienceMs: 600_000, bytesPerSecondMin: 1 },
      downloads: { max: 1, ofHolderMax: 1 },
    },
  })
  closers.push(() => fastify.close())
  const read = () => {
    state.opened += 1
    const file = new Readable({ read: () => undefined })
    file.push('x')
    file.once('close', () => {
      state.opened -= 1
    })
    return file
  }
  const file: FileBody = {
    ...{ size: 1_000_000, sha256: '00'.repeat(32), contentType: 'image/png', filename: undefined },
    ...{ access: 'public', read },
  }
  const wait = async () => {
    state.asked += 1
    await begun
    state.sent += 1
  }
  fastify.get('/early', async (request, reply) => sendFile(request, reply, file))
  fastify.get('/late', async (request, reply) => {
    await wait()
    return sendFile(request, reply, file)
  })
  fastify.get('/stream', async () => {
    await wait()
    return read()
  })
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(fastify.server.address() as AddressInfo).port}`
  const countConnections = () =>
    new Promise((resolve) => fastify.server.getConnections((_, count) => resolve(count)))
  return { url, state, begin, lines, countConnections }
}

const image = 'Accept: image/png'
const chunked = 'Transfer-Encoding: chunked'
const crumbs = '1\r\nx\r\n'.repeat(2 * limits.bodyPartsMax)

describe('a file', () => {
  test.each(['/late', '/stream'])(
    'whose reader has gone before it is sent is closed, and holds no place: %s',
    async (path) => {
      const { url, state, begin, countConnections } = await listenLate()
      const socket = await open(url)
      socket.on('error', () => undefined)
      socket.write(makeRawRequest(`GET ${path} HTTP/1.1`, [image]))
      await expect.poll(() => state.asked).toBe(1)
      socket.resetAndDestroy()
      await expect.poll(countConnections).toBe(0)
      begin()
      await expect.poll(() => state.sent).toBe(1)
      await expect.poll(() => state.opened).toBe(0)
      const controller = new AbortController()
      const { signal } = controller
      const reply = await fetch(`${url}/early`, { headers: { accept: 'image/png' }, signal })
      expect(reply.status).toBe(200)
      controller.abort()
    },
  )

  test('is not opened where its request was refused for its body meanwhile', async () => {
    const { url, state, begin, lines } = await listenLate()
    const socket = await open(url)
    const all = readUntilClosed(socket)
    socket.write(makeRawRequest('GET /late HTTP/1.1', [image, chunked]) + crumbs)
    const [reply] = parseReplies(await all)
    expect(reply).toMatchObject({ status: 400, text: expect.stringContaining('small chunks') })
    begin()
    await expect.poll(() => state.sent).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    expect(state.opened).toBe(0)
    expect(lines).toEqual([])
  })

  test('that is being sent when its request turns out to be broken has no other answer in it', async () => {
    const { url, lines } = await listenLate()
    const socket = await open(url)
    let text = ''
    socket
      .on('error', () => undefined)
      .on('data', (part) => {
        text += part
      })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(makeRawRequest('GET /early HTTP/1.1', [image, chunked]))
    await expect.poll(() => text).toContain('\r\n\r\nx')
    socket.write('no chunk\r\n')
    await closed
    expect(text.endsWith('\r\n\r\nx')).toBe(true)
    expect(lines).toEqual([])
  })

  test('that is being sent when a body in crumbs comes ends with its connection, which is no error of the service', async () => {
    const { url, state, lines } = await listenLate()
    const socket = await open(url)
    let text = ''
    socket
      .on('error', () => undefined)
      .on('data', (part) => {
        text += part
      })
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(makeRawRequest('GET /early HTTP/1.1', [image, chunked]))
    await expect.poll(() => text).toContain(' 200 ')
    socket.write(crumbs)
    await closed
    await expect.poll(() => state.opened).toBe(0)
    expect(lines).toEqual([])
  })
})
