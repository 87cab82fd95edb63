import { createSocket } from 'node:dgram'
import { promises } from 'node:dns'
import { createServer, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createSocketServer } from 'node:net'
import { limits } from '@tollbase/contract/limits'
import { afterEach, describe, expect, test } from 'vitest'
import { realWorld } from '../base/world.ts'
import { parseAllowedHost } from './allowed-host.ts'
import { askUpstream, type UpstreamBounds } from './ask-upstream.ts'
import { isPublicAddress } from './public-address.ts'
import { resolveUpstream } from './resolve-upstream.ts'
import { UpstreamError } from './upstream-error.ts'

const closers: (() => unknown)[] = []
afterEach(() => {
  for (const close of closers.splice(0)) close()
})

describe('the addresses of upstreams', () => {
  test('an address of the public internet is told from every other, whatever it carries', () => {
    for (const address of ['8.8.8.8', '1.1.1.1', '172.32.0.1', '2606:4700::1111', '2a00:1450::1'])
      expect(isPublicAddress(address), address).toBe(true)
    const others = ['127.0.0.1', '169.254.169.254', '100.100.100.200', '192.0.0.192', '::1']
    const carrying = ['::ffff:8.8.8.8', '2002:808:808::1', '64:ff9b::808:808', '2001:0:808:808::1']
    for (const address of [...others, ...carrying, 'fe80::1%eth0', '::8.8.8.8', '0.0.0.0'])
      expect(isPublicAddress(address), address).toBe(false)
  })

  test('a name with one address inside is refused, whatever its others are, and a name is looked up once for each request', async () => {
    const zone = new Map([
      ['mixed.test', [['8.8.8.8', '10.0.0.1']]],
      ['rebinding.test', [['8.8.8.8'], ['127.0.0.1']]],
      ['loopback.test', [['127.0.0.1']]],
      ['metadata.test', [['169.254.169.254']]],
    ])
    const { resolver, asked } = await startNameServer(zone)
    const find = (host: string) =>
      resolveUpstream(new URL(`http://${host}/`), { allowed: [], resolver })
    for (const host of [
      'mixed.test',
      'loopback.test',
      'metadata.test',
      'localhost',
      'nothing.test',
    ])
      await expect(find(host), host).rejects.toThrow(/has (the|no) address/)
    // The connection is made to the addresses that were checked; the next request checks anew.
    expect(await find('rebinding.test')).toEqual([{ address: '8.8.8.8', family: 4 }])
    expect(asked.filter((name) => name === 'rebinding.test')).toHaveLength(1)
    await expect(find('rebinding.test')).rejects.toThrow('127.0.0.1')
    await expect(find('rebinding.test:6379')).rejects.toThrow('ports')
  })

  test('a host that the operator allows is asked wherever it is, on its port alone where one is named', async () => {
    const resolver = new promises.Resolver()
    const allow = (text: string) => [parseAllowedHost(text)].flatMap((one) => one ?? [])
    const find = (url: string, allowed: string) =>
      resolveUpstream(new URL(url), { allowed: allow(allowed), resolver })
    expect(await find('http://127.0.0.1:81/', '127.0.0.1')).toEqual([
      { address: '127.0.0.1', family: 4 },
    ])
    expect(await find('http://[::1]:81/', '[::1]:81')).toEqual([{ address: '::1', family: 6 }])
    expect(await find('http://LOCALHOST/', 'localhost:80')).not.toEqual([])
    await expect(find('http://127.0.0.1:82/', '127.0.0.1:81')).rejects.toThrow('ports')
    const closed = find('http://127.0.0.1/', '127.0.0.1:81')
    await expect(closed).rejects.toThrow('allows it (--allow-upstream 127.0.0.1)')
    await expect(find('https://127.0.0.1/', '127.0.0.1:80')).rejects.toThrow('public internet')
    await expect(find('http://127.0.0.1.evil.test/', '127.0.0.1')).rejects.toThrow('no address')
    for (const text of ['', ':80', 'a:b', 'a/b', 'http://a', 'a:99999', 'u@a', 'a b', '::1'])
      expect(parseAllowedHost(text), text).toBeUndefined()
  })
})

describe('the answers of upstreams', () => {
  test('the connection goes to the checked address, and the name stands in its Host header', async () => {
    const hosts: (string | undefined)[] = []
    const port = await serve((response, host) => {
      hosts.push(host)
      response.end('{}')
    })
    const { body } = await ask(port, { host: 'api.shop.test' })
    expect(body.toString()).toBe('{}')
    expect(hosts).toEqual([`api.shop.test:${port}`])
  })

  test('an answer in very many small pieces is whole, and one beyond the bound ends at it', async () => {
    const send = (response: ServerResponse, pieces: number) => {
      for (let at = 0; at < pieces; at++) response.write('ab')
      response.end()
    }
    const port = await serve((response) => send(response, 5_000))
    expect((await ask(port)).body.toString()).toBe('ab'.repeat(5_000))
    await expect(ask(port, {}, { bytesMax: 9_999 })).rejects.toThrow('more than 9999 bytes')
    expect((await ask(port, {}, { bytesMax: 10_000 })).body).toHaveLength(10_000)
    const crumbs = await serve((response) => send(response, 2 * limits.bodyPartsMax))
    await expect(ask(crumbs)).rejects.toThrow('too many small chunks')
  })

  test('an answer that trickles ends at the deadline, and one that nobody waits for at once', async () => {
    const port = await serve((response) => {
      const timer = setInterval(() => response.write('a'), 20)
      response.on('close', () => clearInterval(timer))
    })
    await expect(ask(port, {}, { deadlineMs: 300 })).rejects.toMatchObject({ problem: 'late' })
    const controller = new AbortController()
    const aborted = ask(port, {}, { signal: controller.signal })
    controller.abort()
    await expect(aborted).rejects.toMatchObject({ problem: 'unreachable' })
    await expect(ask(port, {}, { signal: controller.signal })).rejects.toThrow('nobody waits')
  })

  test('an answer that changes the protocol is refused, and so is one that ends before its head', async () => {
    for (const head of [
      'HTTP/1.1 101 a\r\nConnection: Upgrade\r\nUpgrade: b\r\n\r\nc',
      'HTTP/1.1 101 a\r\n\r\n',
    ])
      await expect(ask(await serveRaw(head)), head).rejects.toThrow('101')
    for (const head of [
      'HTTP/1.1 100 a\r\n\r\n',
      'HTTP/1.1 200 a\r\nA: b',
      'plain text\r\n\r\n',
      '',
    ])
      await expect(ask(await serveRaw(head)), head).rejects.toBeInstanceOf(UpstreamError)
  })

  test('a type that is none is that of bytes', async () => {
    const types = [
      ['application/json; charset=utf-8', 'application/json; charset=utf-8'],
      ['text/html', 'text/html'],
      ['', 'application/octet-stream'],
      ['json', 'application/octet-stream'],
      ['text/html, text/plain', 'application/octet-stream'],
      [`text/${'x'.repeat(300)}`, 'application/octet-stream'],
    ] as const
    for (const [given, shown] of types) {
      const port = await serve((response) =>
        response.writeHead(200, { 'content-type': given }).end('a'),
      )
      expect((await ask(port)).contentType, given).toBe(shown)
    }
  })

  test('a server without a certificate that is known is not asked over https', async () => {
    const port = await serve((response) => response.end('a'))
    await expect(ask(port, { protocol: 'https:' })).rejects.toMatchObject({
      problem: 'unreachable',
    })
  })
})

async function serve(
  answer: (response: ServerResponse, host: string | undefined) => void,
): Promise<number> {
  const server = createServer((request, response) => answer(response, request.headers.host))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** Serves bytes that need not be HTTP, and no more after them. */
async function serveRaw(bytes: string): Promise<number> {
  const server = createSocketServer((socket) => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(bytes))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  closers.push(() => server.close())
  return (server.address() as AddressInfo).port
}

function ask(
  port: number,
  { host = 'localhost', protocol = 'http:' } = {},
  bounds: Partial<UpstreamBounds> = {},
) {
  const url = new URL(`${protocol}//${host}:${port}`)
  return askUpstream(
    { url, method: 'GET', target: '/', headers: {}, body: undefined },
    [{ address: '127.0.0.1', family: 4 }],
    { world: realWorld, deadlineMs: 30_000, bytesMax: 100_000, ...bounds },
  )
}

/** Starts a name server that gives each name its answers in turn, and notes the names that it was asked for. */
async function startNameServer(zone: ReadonlyMap<string, readonly (readonly string[])[]>) {
  const asked: string[] = []
  // A question that is sent again, on a slow day, is the same one.
  const turns = new Map<number, number>()
  const socket = createSocket('udp4')
  socket.on('message', (query, { port, address }) => {
    const { name, end, type } = readQuestion(query)
    const id = query.readUInt16BE(0)
    const turn = turns.get(id) ?? asked.filter((one) => one === name).length
    if (type === 1 && !turns.has(id)) asked.push(name)
    turns.set(id, turn)
    const answers = zone.get(name) ?? []
    const addresses = type === 1 ? (answers[Math.min(turn, answers.length - 1)] ?? []) : []
    socket.send(makeAnswer(query.subarray(0, end), addresses), port, address)
  })
  await new Promise<void>((resolve) => socket.bind(0, '127.0.0.1', resolve))
  closers.push(() => socket.close())
  const resolver = new promises.Resolver({ timeout: 10_000, tries: 3 })
  resolver.setServers([`127.0.0.1:${socket.address().port}`])
  return { resolver, asked }
}

/** RFC 1035, 4.1.2: labels, type and class. */
function readQuestion(query: Buffer): { name: string; end: number; type: number } {
  const labels: string[] = []
  let at = 12
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join('.').toLowerCase(), end: at + 5, type: query.readUInt16BE(at + 1) }
}

/** An answer with these addresses, each a record that points back to the name of the question. */
function makeAnswer(question: Buffer, addresses: readonly string[]): Buffer {
  const head = Buffer.from(question)
  head.writeUInt16BE(0x8180, 2)
  head.writeUInt16BE(addresses.length, 6)
  head.writeUInt16BE(0, 8)
  head.writeUInt16BE(0, 10)
  const records = addresses.map((address) => [
    ...[0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4],
    ...address.split('.').map(Number),
  ])
  return Buffer.concat([head, Buffer.from(records.flat())])
}
