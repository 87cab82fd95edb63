import { createHash, randomBytes } from 'node:crypto'
import { encodeHex } from '@tollbase/server/x402/hex'
import { drive, type LoadResult, makeHttpRequest, requireNoFailure } from './load.ts'
import { makeBody, price } from './paid-reads.ts'
import { requestsAlone, requestsPerRound } from './payments.ts'
import type { PrepaidConfig } from './peers/prepaid-server.ts'
import { type Place, startPeer } from './place.ts'
import { findBestPool } from './pools.ts'
import { collection, compileListStatement } from './reads.ts'
import type { Row } from './report.ts'
import { interleave } from './rounds.ts'

const poolSizes = [2, 4, 8]
const wide = 32

/** Sends this many requests over this many connections. */
export type Send = (connections: number, count: number) => Promise<LoadResult>

/** Makes the requests of an agent for paid reads, each under a name of its own. */
export function makeAgentRequests(agent: string, count: number): Buffer[] {
  return Array.from({ length: count }, (_, at) =>
    makeHttpRequest('/list', makeBody(at, collection), {
      'x-agent-key': agent,
      'idempotency-key': encodeHex(randomBytes(16)),
    }),
  )
}

/**
 * Compares our sales with the same sales written by hand, and these with the same read free: what is missing between the
 * two is durable commits and PostgreSQL; the rest is ours.
 */
export async function compareWithHandWritten(
  place: Place,
  ours: Send,
  options: { readonly rounds: number; readonly nodeOptions: readonly string[] },
): Promise<Row[]> {
  const { rounds } = options
  const agent = encodeHex(randomBytes(16))
  const peerWith = async (poolSize: number) => {
    const config: PrepaidConfig = {
      connection: place.connection,
      poolSize,
      list: compileListStatement({ field: 'city', limit: 20, total: false }),
      keyHash: createHash('sha256').update(agent).digest('hex'),
      balance: '900000000',
      price: Number(price),
    }
    const { port, stop } = await startPeer('prepaid-server', config, options.nodeOptions)
    const send = async (connections: number, requests: readonly Buffer[]) =>
      requireNoFailure(await drive({ port, connections, requests, status: 200 }))
    const sell: Send = (connections, count) => send(connections, makeAgentRequests(agent, count))
    const give: Send = (connections, count) =>
      send(
        connections,
        Array.from({ length: count }, (_, at) =>
          makeHttpRequest('/list', makeBody(at, collection)),
        ),
      )
    return { sell, give, stop, run: async () => (await sell(wide, requestsPerRound)).perSecond }
  }
  const peer = await peerWith(await findBestPool(poolSizes, peerWith))
  try {
    await peer.run()
    await peer.give(wide, requestsPerRound)
    const compare = async (name: string, [one, other]: readonly [Send, Send], width: number) => {
      const count = width === 1 ? requestsAlone : requestsPerRound
      const comparison = await interleave({
        rounds,
        ours: async () => (await one(width, count)).perSecond,
        peer: async () => (await other(width, count)).perSecond,
      })
      const connections = width === 1 ? '1 connection' : `${width} connections`
      const note = 'node:http, pg and one statement a batch; see peers/prepaid-server.ts'
      return { name: `${name}, ${connections}`, unit: 'requests/s', comparison, note }
    }
    const rows: Row[] = []
    for (const width of [1, wide])
      rows.push(
        await compare('prepaid, over the same sale written by hand', [ours, peer.sell], width),
        await compare(
          'prepaid written by hand, over its own read free',
          [peer.sell, peer.give],
          width,
        ),
      )
    return rows
  } finally {
    await peer.stop()
  }
}
