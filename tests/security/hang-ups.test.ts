import { createServer as createHttpServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Contract } from '@tollbase/contract/route'
import { Type } from 'typebox'
import { afterEach, describe, expect, test } from 'vitest'
import { realWorld } from '../../packages/server/src/base/world.ts'
import { admitRequests } from '../../packages/server/src/http/admit-requests.ts'
import { implement } from '../../packages/server/src/http/implement.ts'
import type { Upload } from '../../packages/server/src/http/request-info.ts'
import { createServer } from '../../packages/server/src/http/server.ts'
import { readBytes } from '../../packages/server/src/http/tus.ts'
import { readForm } from '../../packages/server/src/http/upload.ts'
import { createLog } from '../../packages/server/src/operator/log.ts'
import { makeRawRequest, open } from './raw-http.ts'

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
})

const contract = {
  listMany: {
    ...{ method: 'GET', path: '/many', area: 'Collections', summary: '' },
    ...{ access: 'public', shows: 'service', reply: Type.Unknown() },
  },
} as const satisfies Contract

/** Items of a long list, of a kilobyte each, and those that are printed without a pause. */
const itemsOfLong = 20_000
const itemsAtOnce = 100

/** Serves a list that counts what is printed of it; `begin` is waited for before it is returned. */
async function listen({ length = itemsOfLong, begin = Promise.resolve() }) {
  const state = { isAsked: false, printed: 0, printedWhenFreed: undefined as number | undefined }
  const item = {
    toJSON: () => {
      state.printed += 1
      return 'x'.repeat(1024)
    },
  }
  const fastify = createServer({
    world: realWorld,
    log: createLog('silent', { write: () => undefined }),
    finishMs: 1000,
    onFinish: () => undefined,
    trustProxy: [],
    explain: () => undefined,
  })
  closers.push(() => fastify.close())
  admitRequests(fastify, () => undefined)
  implement(fastify, contract, {
    enter: async (_operationId, _route, { context }) => {
      state.isAsked = true
      context.leave = () => {
        state.printedWhenFreed = state.printed
      }
    },
    judge: async () => undefined,
    findEarlierReply: async () => undefined,
    runOnce: async (_call, _operation, work) => ({ answer: await work(), isRepeat: false }),
    readAnew: (work) => work(),
    handlers: {
      listMany: async () => {
        await begin
        return Array.from({ length }, () => item)
      },
    },
  })
  await fastify.listen({ host: '127.0.0.1', port: 0 })
  const url = `http://127.0.0.1:${(fastify.server.address() as AddressInfo).port}`
  return { url, state, fastify }
}

async function ask(url: string) {
  const socket = await open(url)
  socket.on('error', () => undefined)
  socket.write(makeRawRequest('GET /many HTTP/1.1'))
  return socket
}

describe('readers that hang up', () => {
  test('a list is printed in the place of its request, and no further once its reader has gone', async () => {
    const { url, state } = await listen({})
    const socket = await ask(url)
    await expect.poll(() => state.printed, { interval: 1 }).toBeGreaterThan(0)
    expect(state.printedWhenFreed).toBeUndefined()
    socket.resetAndDestroy()
    await expect.poll(() => state.printedWhenFreed).toBeGreaterThan(0)
    expect(state.printedWhenFreed).toBeLessThan(itemsOfLong)
  })

  test('a list whose reader has gone before is not printed', async () => {
    let begin: () => void = () => undefined
    const asked = new Promise<void>((resolve) => {
      begin = resolve
    })
    const { url, state, fastify } = await listen({ begin: asked })
    const socket = await ask(url)
    await expect.poll(() => state.isAsked).toBe(true)
    socket.resetAndDestroy()
    const count = () =>
      new Promise((resolve) => fastify.server.getConnections((_, n) => resolve(n)))
    await expect.poll(count).toBe(0)
    begin()
    await expect.poll(() => state.printedWhenFreed).toBeGreaterThan(0)
    expect(state.printed).toBeLessThan(itemsAtOnce)
  })

  test('a list that its reader takes is whole, and frees the place when it is printed', async () => {
    const length = 1_000
    const { url, state } = await listen({ length })
    expect(await (await fetch(`${url}/many`)).json()).toHaveLength(length)
    expect(state.printedWhenFreed).toBe(length)
  })
})

const read = {
  bytes: async (request: { headers: Record<string, string>; upload: Upload }) => {
    const { signal } = new AbortController()
    for await (const part of readBytes(request, { world: realWorld, bytesMax: 100, signal }))
      expect(part).toBeUndefined()
  },
  form: (request: { headers: Record<string, string>; upload: Upload }) =>
    readForm(request, {
      ...{ world: realWorld, file: 'file', fileBytesMax: 100 },
      take: async ({ stream }) => void stream.resume(),
      drop: async () => undefined,
    }),
}

test.each(['bytes', 'form'] as const)(
  'an upload whose sender has gone before it is read has failed at once, and waits for no more of it: %s',
  async (how) => {
    const requests: IncomingMessage[] = []
    const server = createHttpServer((request) => void requests.push(request))
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    closers.push(() => server.close())
    const socket = await open(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    socket.on('error', () => undefined)
    socket.write('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\nx')
    await expect.poll(() => requests.length).toBe(1)
    socket.resetAndDestroy()
    const [stream] = requests
    if (stream === undefined) throw new Error('there is no request')
    await expect.poll(() => stream.closed).toBe(true)
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const reading = read[how]({ headers, upload: { stream, sha256: undefined } })
    await expect(reading).rejects.toThrow('did not arrive whole')
  },
)
