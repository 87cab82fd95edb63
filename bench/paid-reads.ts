import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { realWorld } from '@tollbase/server/base/world'
import { encodeHex, encodeQuantity } from '@tollbase/server/x402/hex'
import { makePaymentNetwork } from '@tollbase/server/x402/networks'
import { openRpc } from '@tollbase/server/x402/rpc'
import { deriveAddress, digestTransfer, signDigest } from '@tollbase/server/x402/signature'
import { getCity } from './documents.ts'
import { drive, makeHttpRequest, requireNoFailure, sendOnce } from './load.ts'
import { app, call, openPlace, type Place, startOurs, startPeer } from './place.ts'
import { findBestPool } from './pools.ts'
import { collection, compileListStatement, storeItems } from './reads.ts'
import type { Benchmark } from './report.ts'
import { interleave } from './rounds.ts'
import { toHexText } from './signatures.ts'

const recordsTotal = 20_000
const connections = 32
const paymentsPerRound = 480
const price = '1000'
const chainId = 84532
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
      const peerWith = async (pollMs: number) => {
        const server = await startPeer(
          'express-x402',
          await peerConfig(place, { pollMs }),
          nodeOptions,
        )
        return { run: () => sell(server.port, payers), stop: server.stop }
      }
      const pollMs = await findBestPool(pollsMs, peerWith)
      const peer = await peerWith(pollMs)
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
            note: `no failure on either side; ${paymentsPerRound} payments a round, signed before; Express looks for receipts every ${pollMs} ms, the best of ${pollsMs.join(', ')}, and is given gas and fees`,
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

async function fund(port: number, address: string): Promise<void> {
  await call(port, '/devnet/faucet', { body: { address, amount: '1000000000' } })
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
  const requests: Buffer[] = []
  for (const [at, key] of payers.entries()) {
    const body = JSON.stringify({
      root: `${app}::${collection}`,
      find: { city: { is: getCity(at, recordsTotal) } },
      limit: 20,
    })
    const required = await readRequirements(port, body)
    for (let n = 0; n < paymentsPerRound / payers.length; n++) {
      const payment = Buffer.from(JSON.stringify(signed(required, key))).toString('base64')
      requests.push(makeHttpRequest('/list', body, { 'payment-signature': payment }))
    }
  }
  // Requests that follow each other are from different payers, as in life.
  return requests.map((_, at) => {
    const each = paymentsPerRound / payers.length
    return requests[(at % payers.length) * each + Math.floor(at / payers.length)] ?? Buffer.alloc(0)
  })
}

type Required = {
  readonly resource: object
  readonly accepts: readonly {
    readonly asset: string
    readonly payTo: string
    readonly amount: string
    readonly maxTimeoutSeconds: number
    readonly extra: { readonly name: string; readonly version: string }
  }[]
}

/** Reads the payment requirements that the server states in its 402. */
async function readRequirements(port: number, body: string): Promise<Required> {
  const reply = await sendOnce(port, makeHttpRequest('/list', body))
  const header = /\r\npayment-required: (\S+)/i.exec(reply.headers)?.[1]
  if (reply.status !== 402 || header === undefined)
    throw new Error(`not asked for a payment: ${reply.status} ${reply.body.toString()}`)
  return JSON.parse(Buffer.from(header, 'base64').toString())
}

/** Makes a payment of version 2 as a stock client does. */
function signed({ resource, accepts }: Required, key: Buffer): object {
  const [accepted] = accepts
  if (accepted === undefined) throw new Error('the 402 offers no way to pay')
  const { asset, payTo, amount, extra, maxTimeoutSeconds } = accepted
  const network = makePaymentNetwork({
    chainId,
    payTo,
    asset: { address: asset, symbol: extra.name, decimals: 6, ...extra },
  })
  const authorization = {
    from: deriveAddress(key),
    to: network.payTo,
    value: amount,
    validAfter: '0',
    validBefore: String(Math.floor(Date.now() / 1000) + maxTimeoutSeconds),
    nonce: encodeHex(randomBytes(32)),
  }
  const digest = digestTransfer(network, {
    ...authorization,
    value: BigInt(authorization.value),
    validAfter: BigInt(authorization.validAfter),
    validBefore: BigInt(authorization.validBefore),
  })
  return {
    x402Version: 2,
    resource,
    accepted,
    payload: { signature: signDigest(digest, key), authorization },
  }
}
