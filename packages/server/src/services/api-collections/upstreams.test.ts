import { randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { limits } from '@tollbase/contract/limits'
import { expect, test } from 'vitest'
import { realWorld } from '../../base/world.ts'
import { type UpstreamCall, Upstreams } from './upstreams.ts'

test('one request is made for all who want a cached answer, and its failure is theirs, so that one who asks himself comes to an end', async () => {
  const host = '127.0.0.1'
  const upstreams = new Upstreams({
    // Times go by faster, so that nobody waits for the whole deadline.
    world: { ...realWorld, every: (ms, run) => realWorld.every(ms / 10, run) },
    allowed: [{ host, port: undefined }],
    headerKey: randomBytes(32),
  })
  const inner: Promise<string>[] = []
  const server = createServer(() => inner.push(ask()))
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  const call: UpstreamCall = {
    turn: { application: 'a', caller: 'b', rank: 'paid' },
    request: {
      url: new URL(`http://${host}:${port}`),
      method: 'GET',
      target: '/',
      headers: {},
      body: undefined,
    },
    name: 'c',
    cacheSeconds: 60,
  }
  const ask = () => upstreams.ask(call).then(String, ({ problem }) => String(problem))
  try {
    expect(await Promise.all([ask(), ask(), ask()])).toEqual(['late', 'late', 'late'])
    await Promise.all(inner)
    expect(inner.length).toBeLessThanOrEqual(1)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('one application has as many requests at once as its limit says, with one left for each of paying and other callers', async () => {
  const host = '127.0.0.1'
  const upstreams = new Upstreams({
    world: realWorld,
    allowed: [{ host, port: undefined }],
    headerKey: randomBytes(32),
  })
  let running = 0
  const server = createServer(() => {
    running += 1
  })
  await new Promise<void>((resolve) => server.listen(0, host, resolve))
  const { port } = server.address() as AddressInfo
  const url = new URL(`http://${host}:${port}`)
  const request = { url, method: 'GET', target: '/', headers: {}, body: undefined } as const
  const ask = (rank: 'paid' | 'key') => {
    const turn = { application: 'a', caller: 'b', rank }
    return upstreams.ask({ turn, request, name: '', cacheSeconds: 0 }).catch(() => undefined)
  }
  const most = limits.upstreamsAtOnceOfApplicationMax
  const asking: Promise<unknown>[] = []
  try {
    for (let count = 0; count < most; count++) asking.push(ask('paid'))
    await expect.poll(() => running).toBe(most - 1)
    for (let count = 0; count < most; count++) asking.push(ask('key'))
    await expect.poll(() => running).toBe(most)
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(running).toBe(most)
  } finally {
    server.on('connection', (socket) => socket.destroy())
    server.closeAllConnections()
    await Promise.all(asking)
    server.close()
  }
})
