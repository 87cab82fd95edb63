import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  answer,
  type RemoteFacilitator,
  says,
  startRemoteFacilitator,
} from '../payments/remote-facilitator.ts'
import { type Asked, ask, list, makeBuyer, type PaymentHeader, quote } from '../support/buyer.ts'
import { openMarket } from '../support/market.ts'
import { type Program, startProgram } from '../support/program.ts'
import { send, type TestService } from '../support/service.ts'

type Api = Pick<TestService, 'request' | 'createApp'>

/** The drain is so long that a slow machine still gets its answers out in time. */
const drainSeconds = 8
let remote: RemoteFacilitator
beforeAll(async () => {
  remote = await startRemoteFacilitator()
})
afterAll(() => remote?.close())

type Started = { readonly program: Program; readonly url: string; readonly api: Api }

/** Runs the work with the real program, started once or more on one data folder. */
async function withProgram(work: (start: () => Promise<Started>) => Promise<void>): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-drain-'))
  const file = join(dataDir, 'config.json')
  const network = {
    network: 'base-sepolia',
    pay_to: `0x${'12'.repeat(20)}`,
    minimum_payment: 1,
    facilitator_url: remote.url,
  }
  writeFileSync(file, JSON.stringify({ drain_seconds: drainSeconds, networks: [network] }))
  const programs: Program[] = []
  try {
    await work(async () => {
      const program = startProgram(dataDir, [`--config=${file}`])
      programs.push(program)
      const url = await program.url
      return { program, url, api: makeApi(url, dataDir) }
    })
  } finally {
    for (const program of programs) await program.end('SIGKILL')
    rmSync(dataDir, { recursive: true, force: true })
  }
}

function makeApi(url: string, dataDir: string): Api {
  const request: Api['request'] = (method, path, options = {}) =>
    send(url, { method, path, ...options })
  return {
    request,
    createApp: async () => {
      const { body } = await request('POST', '/api/apps', {
        body: { name: 'Drain', app_id: 'drain' },
        headers: {
          authorization: `Bearer ${readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()}`,
        },
      })
      return {
        appId: 'drain',
        key: body.app_key,
        keyHash: body.key_hash,
        headers: { 'x-app-key': body.app_key },
      }
    },
  }
}

/** Opens a connection; gives the text received so far, and waits for more of it. */
function wire(url: string) {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let received = ''
  let isOver = false
  socket.on('error', () => undefined)
  socket.on('close', () => {
    isOver = true
  })
  socket.setEncoding('latin1').on('data', (chunk) => {
    received += chunk
  })
  const until = async (pattern: RegExp) => {
    while (!pattern.test(received)) {
      if (isOver) throw new Error(`the connection was closed after ${received.slice(-500)}`)
      await wait(5)
    }
  }
  return {
    socket,
    until,
    received: () => received,
    over: async () => {
      while (!isOver) await wait(5)
      return received
    },
  }
}

/**
 * Sends a part of a request; the rest waits for `finish`. The request before it was answered, so the server has
 * read that part.
 */
async function halfAsked(url: string, path: string) {
  const { socket, until, over } = wire(url)
  socket.write(`GET /health HTTP/1.1\r\nhost: x\r\n\r\nGET ${path} HTTP/1.1\r\nhost: x\r\n`)
  await until(/"status":"ok"/)
  return {
    finish: async () => {
      socket.write('\r\n')
      return (await over()).split(/(?=HTTP\/1\.1 )/).at(-1) ?? ''
    },
  }
}

/** Sends a request whose head the server has read, and whose body comes later. */
async function headAsked(url: string, request: { headers: object; path: string; body: string }) {
  const { socket, until, over } = wire(url)
  const headers = Object.entries({
    host: 'x',
    expect: '100-continue',
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(request.body),
    ...request.headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  socket.write(`POST ${request.path} HTTP/1.1\r\n${headers.join('')}\r\n`)
  await until(/100 Continue/)
  return {
    finish: async () => {
      socket.write(request.body)
      return (await over()).split(/(?=HTTP\/1\.1 )/).at(-1) ?? ''
    },
  }
}

/** Asks for a long answer and stops reading it when it has begun. */
async function slowReader(url: string, body: string) {
  const { socket, until, received, over } = wire(url)
  socket.write(`POST /list HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
  await until(/^content-length: \d+\r\n/m)
  socket.pause()
  return {
    /** The bytes of the body that came, and those that were promised. */
    readOn: async () => {
      socket.resume()
      await over()
      const [head = '', ...rest] = received().split('\r\n\r\n')
      return {
        came: rest.join('\r\n\r\n').length,
        promised: Number(/^content-length: (\d+)/m.exec(head)?.[1]),
      }
    },
  }
}

async function settlesBegun(count: number): Promise<void> {
  while (remote.settles() < count) await wait(10)
}

/** Resolves once no new connection is taken. */
async function refusesConnections(url: string): Promise<void> {
  for (;;) {
    const { socket } = wire(url)
    const isTaken = await new Promise((resolve) => {
      socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    })
    socket.destroy()
    if (!isTaken) return
    await wait(5)
  }
}

test('a service that is told to end with work under way finishes what it can, answers the rest 503, and exits 0 in time', {
  timeout: 180_000,
}, async () => {
  await withProgram(async (start) => {
    const { program, url, api } = await start()
    const market = await openMarket(api, { price: { per_row: '100' } })
    const free = `${market.appId}::free`
    await api.request('POST', `/api/apps/${market.appId}/collections`, {
      headers: market.headers,
      body: { name: 'free', access_policy: 'public' },
    })
    // The most that one answer has, and more than sockets hold for a reader that has stopped.
    for (let n = 0; n < 2; n++) {
      const data = [1, 2, 3, 4].map((at) => ({ id: `f${n}-${at}`, pad: 'x'.repeat(1_000_000) }))
      const body = { root: free, data }
      await api.request('POST', '/store?wait=true', { headers: market.headers, body })
    }
    // Makes a payment whose settlement is not answered for now.
    remote.settle = () => undefined
    const before = remote.settles()
    const asked = list({ root: market.root, limit: 3 })
    const header = await makeBuyer().payV2(await quote(api, asked))
    const paying = ask(api, asked, header)
    paying.catch(() => undefined)
    await settlesBegun(before + 1)
    const storing = await headAsked(url, {
      path: '/store?wait=true',
      headers: market.headers,
      body: JSON.stringify({ root: market.root, data: [{ id: 'late', name: 'Bregenz' }] }),
    })
    const slow = await slowReader(url, JSON.stringify({ root: free }))
    const stuck = await slowReader(url, JSON.stringify({ root: free }))
    const probe = await halfAsked(url, '/ready')
    const late = await halfAsked(url, '/docs')

    const toldAt = Date.now()
    const ended = program.end('SIGTERM')
    await refusesConnections(url)
    expect(await probe.finish()).toMatch(
      /^HTTP\/1\.1 503 [\s\S]*"ready":false[\s\S]*"draining":"yes"/,
    )
    expect(await late.finish()).toMatch(
      /^HTTP\/1\.1 503 [\s\S]*retry-after: [1-9][\s\S]*"code":"UNAVAILABLE"/,
    )
    expect(await storing.finish()).toMatch(/^HTTP\/1\.1 200 [\s\S]*"ticket_id"/)
    const read = await slow.readOn()
    expect(read.promised).toBeGreaterThan(8_000_000)
    expect(read.came).toBe(read.promised)
    const paid = await paying
    expect(paid.status, paid.text).toBe(503)
    expect(paid.body.code).toBe('UNAVAILABLE')
    expect(Number(paid.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await ended, program.output()).toBe(0)
    // The maximum for the drain, the readers, and closing; this is not a measurement.
    expect(Date.now() - toldAt).toBeLessThan(drainSeconds * 1000 + 20_000)
    const cut = await stuck.readOn()
    expect(cut.came).toBeLessThan(cut.promised)

    // The same payment buys the answer from the next process, and acknowledged records are there.
    remote.settle = says({ success: true, transaction: `0x${'ab'.repeat(32)}` })
    const next = await start()
    const bought = await askUntilSettled(next.api, asked, header)
    expect(bought.status, bought.text).toBe(200)
    expect(bought.body.records).toHaveLength(3)
    const stored = await next.api.request(
      'GET',
      '/api/apps/drain/collections/cities/records/late',
      {
        headers: market.headers,
      },
    )
    expect(stored.status).toBe(200)
    expect(await next.program.end('SIGTERM'), next.program.output()).toBe(0)
  })
})

test('a payment whose settlement ends in time is delivered, though the service was told to end', async () => {
  await withProgram(async (start) => {
    const { program, url, api } = await start()
    const market = await openMarket(api, { price: { per_row: '100' } })
    let settle: () => void = () => undefined
    remote.settle = (_, reply) => {
      settle = () => answer(reply, { success: true, transaction: `0x${'cd'.repeat(32)}` })
    }
    const before = remote.settles()
    const asked = list({ root: market.root, limit: 3 })
    const header = await makeBuyer().payV2(await quote(api, asked))
    const paying = ask(api, asked, header)
    await settlesBegun(before + 1)
    const ended = program.end('SIGTERM')
    await refusesConnections(url)
    settle()
    const paid = await paying
    expect(paid.status, paid.text).toBe(200)
    expect(paid.body.records).toHaveLength(3)
    expect(await ended, program.output()).toBe(0)
  })
})

async function askUntilSettled(api: Api, asked: Asked, header: PaymentHeader) {
  for (;;) {
    const reply = await ask(api, asked, header)
    if (reply.status !== 503) return reply
    await wait(100)
  }
}
