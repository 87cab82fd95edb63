import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { afterEach, expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { createServer } from '../../packages/server/src/http/server.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'

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
