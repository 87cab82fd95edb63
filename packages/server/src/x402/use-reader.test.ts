import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { realWorld as world } from '../base/world.ts'
import { encodeHexWord, encodeNumberWord } from './hex.ts'
import { openRpc } from './rpc.ts'
import { topics } from './token.ts'
import { UseReader } from './use-reader.ts'

const token = `0x${'0a'.repeat(20)}`
const to = `0x${'0b'.repeat(20)}`
const nonce = `0x${'0c'.repeat(32)}`
const transaction = `0x${'0d'.repeat(32)}`
const blockHash = `0x${'0e'.repeat(32)}`

/** Makes a use of a payer's, its transfer, and two hundred moves of nothing that anybody made in its name. */
function makeLogs(from: string): readonly object[] {
  const payer = `0x${encodeHexWord(from)}`
  const make = (at: number, own: readonly string[], value: bigint) => ({
    ...{ address: token, topics: own, data: `0x${encodeNumberWord(value)}` },
    ...{ blockHash, blockNumber: '0x7', transactionHash: transaction, transactionIndex: '0x1' },
    logIndex: `0x${at.toString(16)}`,
  })
  const transfer = [topics.transfer, payer, `0x${encodeHexWord(to)}`]
  const moves = Array.from({ length: 200 }, (_, at) => make(at + 2, transfer, 0n))
  return [make(0, [topics.used, payer, nonce], 0n), make(1, transfer, 5n), ...moves]
}

test('short looks at many payers, each of which has more than one may, are one request each, few at once', async () => {
  const payers = Array.from({ length: 12 }, (_, at) => `0x${String(at + 1).padStart(40, '0')}`)
  const asked = { requests: 0, most: 0, underWay: 0 }
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part)
    asked.requests += 1
    asked.underWay += 1
    asked.most = Math.max(asked.most, asked.underWay)
    await world.sleep(10)
    const calls: readonly { id: number; params: [{ topics: [string[], string] }] }[] = JSON.parse(
      Buffer.concat(parts).toString(),
    )
    const answers = calls.map(({ id, params: [{ topics: wanted }] }) => {
      const from = payers.find((payer) => wanted[1] === `0x${encodeHexWord(payer)}`) ?? ''
      return { id, result: makeLogs(from) }
    })
    asked.underWay -= 1
    response.end(JSON.stringify(answers))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const rpc = openRpc({ url: `http://127.0.0.1:${port}`, world })
  try {
    const reader = new UseReader(rpc, token)
    const found = await Promise.all(
      payers.map((from) => reader.find(transaction, { from, to, nonce }, blockHash)),
    )
    for (const logs of found) expect(logs).toHaveLength(2)
    expect(asked.requests).toBe(2 * payers.length)
    expect(asked.most).toBeLessThanOrEqual(6)
  } finally {
    rpc.close()
    server.closeAllConnections()
    server.close()
  }
})
