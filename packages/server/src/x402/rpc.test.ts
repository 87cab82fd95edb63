import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { realWorld as world } from '../base/world.ts'
import { checkChain } from './evm-chain.ts'
import { hasTooManyLogs, makeCheckedRpc, openRpc, type Rpc, RpcError } from './rpc.ts'
import { TransactionReceipts } from './transaction-receipts.ts'

type Answer = (body: string, response: ServerResponse, request: IncomingMessage) => void

const open: { server: Server; rpc: Rpc }[] = []

afterEach(() => {
  for (const { server, rpc } of open.splice(0)) {
    rpc.close()
    server.closeAllConnections()
    server.close()
  }
})

async function nodeThat(answer: Answer, deadlineMs = 300): Promise<Rpc> {
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => answer(body, response, request))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const url = `http://127.0.0.1:${port}`
  const rpc = openRpc({ url, world, deadlineMs, responseBytesMax: 10_000 })
  open.push({ server, rpc })
  return rpc
}

const unreachable = { code: 'PAYMENT_NETWORK_UNREACHABLE', status: 503 }

test('calls of one turn travel as one batch and find their answers in any order', async () => {
  let requests = 0
  const rpc = await nodeThat((body, response) => {
    requests++
    const calls: { id: number; params: unknown[] }[] = JSON.parse(body)
    const answers = calls.map(({ id, params }) => ({ jsonrpc: '2.0', id, result: params[0] }))
    response.end(JSON.stringify(answers.reverse()))
  })
  const results = await Promise.all([1, 2, 3, 4].map((each) => rpc.call('echo', [each])))
  expect(results).toEqual([1, 2, 3, 4])
  expect(requests).toBe(1)
})

test('another chain that came to the address of a node gets nothing that is signed', async () => {
  const chain = { id: '0x1', sent: 0 }
  const results = new Map<string, () => unknown>([
    ['eth_chainId', () => chain.id],
    ['eth_getBlockByNumber', () => ({ hash: `0x${'00'.repeat(32)}` })],
    ['eth_sendRawTransaction', () => ++chain.sent],
  ])
  const plain = await nodeThat((body, response) => {
    const calls: { id: number; method: string }[] = JSON.parse(body)
    response.end(
      JSON.stringify(calls.map(({ id, method }) => ({ id, result: results.get(method)?.() }))),
    )
  })
  const rpc = makeCheckedRpc(plain, () => checkChain(plain, { id: 'eip155:1', chainId: 1 }))
  await rpc.call('eth_sendRawTransaction', ['0x'])
  chain.id = '0x2'
  await expect(rpc.call('eth_sendRawTransaction', ['0x'])).rejects.toMatchObject(unreachable)
  expect(chain.sent).toBe(1)
  chain.id = '0x1'
  await rpc.call('eth_sendRawTransaction', ['0x'])
  expect(chain.sent).toBe(2)
})

test('an error of the node is told apart from a revert and from a silent node', async () => {
  const rpc = await nodeThat((_, response) => {
    const errors = [
      { code: 3, message: 'execution reverted: no', data: '0x08c379a0' },
      { code: -32005, message: 'limit exceeded' },
    ]
    response.end(JSON.stringify(errors.map((error, id) => ({ id, error }))))
  })
  const [revert, other, missing] = await Promise.allSettled([1, 2, 3].map(() => rpc.call('x', [])))
  expect(revert).toMatchObject({ reason: { reverted: true, data: '0x08c379a0' } })
  expect(other).toMatchObject({ reason: { reverted: false, code: -32005 } })
  expect((other as PromiseRejectedResult).reason).toBeInstanceOf(RpcError)
  expect(missing).toMatchObject({ reason: unreachable })
})

test('answers that are too large together come apart, and one that is too large alone fails alone', async () => {
  const rpc = await nodeThat((body, response) => {
    const calls: { id: number; params: [number] }[] = JSON.parse(body)
    response.end(
      JSON.stringify(calls.map(({ id, params: [n] }) => ({ id, result: 'x'.repeat(n) }))),
    )
  })
  const sizes = [10, 6_000, 6_000, 20_000, 6_000, 10]
  const results = await Promise.allSettled(sizes.map((size) => rpc.call('x', [size])))
  expect(
    results.map((one) => (one.status === 'fulfilled' ? String(one.value).length : one.reason.code)),
  ).toEqual([10, 6_000, 6_000, unreachable.code, 6_000, 10])
})

test.each([
  ['heavy calls', { isHeavy: true }, 2],
  ['calls that travel alone', { isAlone: true }, 4],
])(
  '%s share no request, few go at once, and no other call waits for them; too many are refused',
  async (_, options, atOnceMax) => {
    const underWay = new Set<string>()
    let most = 0
    const ends: (() => void)[] = []
    const rpc = await nodeThat((body, response) => {
      const calls: { id: number; method: string }[] = JSON.parse(body)
      const end = () => {
        underWay.delete(body)
        response.end(JSON.stringify(calls.map(({ id }) => ({ id, result: id }))))
      }
      if (calls[0]?.method !== 'slow') return end()
      expect(calls).toHaveLength(1)
      underWay.add(body)
      most = Math.max(most, underWay.size)
      ends.push(end)
    }, 10_000)
    const send = (at: number) => rpc.call('slow', [at], options)
    const slow = Array.from({ length: atOnceMax + 32 }, (__, at) => send(at))
    // Silence, as of a node that does not answer: nobody takes a payment for failed.
    await expect(send(99)).rejects.toMatchObject(unreachable)
    await expect(send(100)).rejects.not.toSatisfy(hasTooManyLogs)
    for (let n = 0; n < slow.length; n++) {
      expect(await rpc.call('light', [])).toBe(0)
      while (ends.length === 0) await world.sleep(2)
      ends.shift()?.()
    }
    expect(await Promise.all(slow)).toEqual(slow.map(() => 0))
    expect(most).toBe(atOnceMax)
    ends.length = 0
    const later = send(101)
    while (ends.length === 0) await world.sleep(2)
    ends.shift()?.()
    expect(await later).toBe(0)
  },
)

test('a receipt that cannot be read keeps nobody waiting for another one', async () => {
  const [good, bad] = ['aa', 'bb'].map((byte) => `0x${byte.repeat(32)}`)
  const rpc = await nodeThat((body, response) => {
    const calls: { id: number; params: [string] }[] = JSON.parse(body)
    const receipt = { transactionHash: good, status: '0x1', blockNumber: '0x1', logs: [] }
    const answers = calls.map(({ id, params: [hash] }) => ({
      id,
      result: hash === good ? receipt : 'x'.repeat(20_000),
    }))
    response.end(JSON.stringify(answers))
  })
  const receipts = new TransactionReceipts({ rpc, world, pollMs: 5, confirmations: 1 })
  const unread = receipts.wait([bad ?? ''], 3_000)
  const first = await Promise.race([unread, receipts.wait([good ?? ''], 10_000)])
  expect(first).toMatchObject({ hash: good, succeeded: true })
})

describe('unreachable nodes', () => {
  test.each<[string, Answer]>([
    ['says nothing until the deadline', () => undefined],
    ['starts to answer and stops', (_, response) => void response.write('[{')],
    ['answers without JSON', (_, response) => void response.end('<html>')],
    ['answers with something else', (_, response) => void response.end('{"error":1}')],
    ['answers too much', (_, response) => void response.end(JSON.stringify(['x'.repeat(20_000)]))],
    ['closes the connection', (_, response) => void response.destroy()],
    [
      'sends elsewhere',
      (_, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
    ],
  ])('a node counts as unreachable when it %s', async (_name, answer) => {
    const rpc = await nodeThat(answer)
    await expect(rpc.call('eth_chainId', [])).rejects.toMatchObject(unreachable)
  })
})

test('a kept connection that the node has closed is replaced without an error', async () => {
  const rpc = await nodeThat((body, response, request) => {
    const [{ id }] = JSON.parse(body)
    response.end(JSON.stringify([{ id, result: 'ok' }]), () => {
      setTimeout(() => request.socket.resetAndDestroy(), 5)
    })
  })
  for (let round = 0; round < 20; round++) {
    expect(await rpc.call('x', [])).toBe('ok')
    await world.sleep(round % 8)
  }
})
