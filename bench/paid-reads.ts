import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { realWorld } from '@tollbase/server/base/world'
import { encodeHex, encodeQuantity } from '@tollbase/server/x402/hex'
import { makePaymentNetwork } from '@tollbase/server/x402/networks'
import { openRpc } from '@tollbase/server/x402/rpc'
import { deriveAddress } from '@tollbase/server/x402/signature'
import { getCity } from './documents.ts'
import { drive, requireNoFailure } from './load.ts'
import {
  chainId,
  fund,
  makePaidRequest,
  readRequirements,
  signExact,
  takeTurns,
} from './payments.ts'
import { app, openPlace, type Place, startOurs, startPeer } from './place.ts'
import { findBestPool } from './pools.ts'
import { collection, compileListStatement, storeItems } from './reads.ts'
import type { Benchmark } from './report.ts'
import { interleave } from './rounds.ts'
import { toHexText } from './signatures.ts'

export const recordsTotal = 20_000
export const connections = 32
const paymentsPerRound = 480
export const price = '1000'
const pollsMs = [5, 15, 40]
const poolSize = 10

/**
 * Measures a sale from the signed payment to the delivered answer, with every payment settled on the chain and none
 * lost.
 */
export const paidReads: Benchmark = {
  name: 'paid-reads',
  run: async ({ rounds, nodeOptions }) => {
    const place = await openPlace()
    const ours = await startOurs(place, { nodeOptions, command: 'dev' })
    try {
      await storeItems(ours.port, {
        total: recordsTotal,
        policy: { read: 'public', price: { per_access: price } },
      })
      const payers = Array.from({ length: connections }, () => randomBytes(32))
      for (const key of payers) await fund(ours.port, deriveAddress(key))
      const { pollMs, peer } = await startExpress(place, { payers, nodeOptions })
      try {
        await sell(ours.port, payers)
        await peer.run()
        const comparison = await interleave({
          rounds,
          ours: () => sell(ours.port, payers),
          peer: peer.run,
        })
        return [
          {
            name: `paid read by /list, exact on the devnet, ${connections} connections`,
            unit: 'requests/s',
            target: 2,
            comparison,
            note: `no failure on either side; ${paymentsPerRound} payments a round, signed before; ${describeExpress(pollMs)}`,
          },
        ]
      } finally {
        await peer.stop()
      }
    } finally {
      await ours.stop()
      await place.close()
    }
  },
}

/** Starts the usual way to sell a read, with the best interval between its looks for a receipt. */
export async function startExpress(
  place: Place,
  options: { readonly payers: readonly Buffer[]; readonly nodeOptions: readonly string[] },
) {
  const { payers, nodeOptions } = options
  const peerWith = async (pollMs: number) => {
    const config = await peerConfig(place, { pollMs })
    const server = await startPeer('express-x402', config, nodeOptions)
    return { run: () => sell(server.port, payers), stop: server.stop }
  }
  const pollMs = await findBestPool(pollsMs, peerWith)
  return { pollMs, peer: await peerWith(pollMs) }
}

export function describeExpress(pollMs: number): string {
  return `Express looks for receipts every ${pollMs} ms, the best of ${pollsMs.join(', ')}, and is given gas and fees`
}

/** The peer has the same chain, database, table and statement as ours. */
async function peerConfig(place: Place, { pollMs }: { readonly pollMs: number }) {
  const chain = JSON.parse(readFileSync(join(place.serviceDir, 'devnet/anvil.json'), 'utf8'))
  const rpcUrl = `http://127.0.0.1:${chain.port}`
  const key = randomBytes(32)
  const rpc = openRpc({ url: rpcUrl, world: realWorld })
  await rpc.call('anvil_setBalance', [deriveAddress(key), encodeQuantity(10n ** 24n)])
  rpc.close()
  const payTo = deriveAddress(randomBytes(32))
  const { asset } = makePaymentNetwork({ chainId, payTo })
  return {
    connection: place.connection,
    poolSize,
    list: compileListStatement({ field: 'city', limit: 20, total: false }),
    rpcUrl,
    key: toHexText(encodeHex(key)),
    payTo,
    price,
    asset,
    pollMs,
  }
}

/** Measures the sales in a second; the payments are signed before the clock starts. */
async function sell(port: number, payers: readonly Buffer[]): Promise<number> {
  const requests = await paidRequests(port, payers)
  return requireNoFailure(await drive({ port, connections, requests, status: 200 })).perSecond
}

async function paidRequests(port: number, payers: readonly Buffer[]): Promise<Buffer[]> {
  const lists = payers.map(async (key, at) => {
    const unpaid = { path: '/list', body: makeBody(at, collection) }
    const required = await readRequirements(port, unpaid)
    return Array.from({ length: paymentsPerRound / payers.length }, () =>
      makePaidRequest(unpaid, signExact(required, key)),
    )
  })
  return takeTurns(await Promise.all(lists))
}

/** Makes the body of a read of ten records. */
export function makeBody(at: number, name: string): string {
  const find = { city: { is: getCity(at, recordsTotal) } }
  return JSON.stringify({ root: `${app}::${name}`, find, limit: 20 })
}
