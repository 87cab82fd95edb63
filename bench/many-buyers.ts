import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { noLog as log } from '@tollbase/server/base/log'
import { realWorld } from '@tollbase/server/base/world'
import { sql } from '@tollbase/server/database/sql'
import { startDevnet } from '@tollbase/server/devnet/devnet'
import { encodeHex } from '@tollbase/server/x402/hex'
import { openRpc } from '@tollbase/server/x402/rpc'
import { deriveAddress } from '@tollbase/server/x402/signature'
import { drive, requireNoFailure } from './load.ts'
import { makeBody, price, recordsTotal } from './paid-reads.ts'
import { makePaidRequest, readRequirements, signExact } from './payments.ts'
import { configFile, openPlace, type Place, startOurs } from './place.ts'
import { collection, storeItems } from './reads.ts'
import type { Benchmark } from './report.ts'

const buyers = 200
const blockSeconds = 1
const blocksMost = 3

/** Measures many buyers who pay at the same moment, each with a wallet of its own, on a chain with a block every second. */
export const manyBuyers: Benchmark = {
  name: 'many-buyers',
  run: async ({ rounds, nodeOptions }) => {
    const place = await openPlace()
    try {
      const { chain, keys, config } = await openSlowChain(place, rounds)
      const ours = await startOurs(place, { nodeOptions, config })
      try {
        await storeItems(ours.port, {
          total: recordsTotal,
          policy: { read: 'public', price: { per_access: price } },
        })
        const times: number[] = []
        for (const payers of keys) times.push(await buyAtOnce(ours.port, payers))
        const { failed, transactions } = await countSettled(place)
        const slowest = Math.max(...times)
        return [
          {
            name: `${buyers} buyers at once, exact, a block every ${blockSeconds} s: until the last has its answer`,
            unit: 's',
            value: `${times.map((time) => time.toFixed(1)).join(', ')} s; failed settlements: ${failed}; transactions of a round: ${Math.round(transactions / rounds)}`,
            note: `target ${blocksMost} block times, none failed: ${slowest <= blocksMost * blockSeconds && failed === 0 ? 'met' : 'missed'}; new wallets in each round, payments signed before`,
          },
        ]
      } finally {
        await ours.stop()
        await chain.stop()
      }
    } finally {
      await place.close()
    }
  },
}

/** Starts a chain that makes a block every second, whatever waits, with funded buyers for each round. */
async function openSlowChain(place: Place, rounds: number) {
  mkdirSync(place.serviceDir, { recursive: true })
  const devnet = await startDevnet({ dataDir: place.serviceDir, world: realWorld, log })
  const keys = Array.from({ length: rounds }, () =>
    Array.from({ length: buyers }, () => randomBytes(32)),
  )
  for (const key of keys.flat()) await devnet.faucet(deriveAddress(key), 1_000_000n)
  // The chain goes on without the devnet's own miner.
  await devnet.detach()
  const rpc = openRpc({ url: devnet.rpcUrl, world: realWorld })
  await rpc.call('evm_setIntervalMining', [blockSeconds])
  rpc.close()
  const signerFile = join(place.serviceDir, 'gas.key')
  writeFileSync(signerFile, `0x${encodeHex(devnet.keys.gas).replace(/^0x/, '')}\n`, { mode: 0o600 })
  const config = join(place.serviceDir, 'slow-chain.json')
  const { $schema: _, ...common } = JSON.parse(readFileSync(configFile, 'utf8'))
  const network = {
    network: 'base-sepolia',
    pay_to: devnet.network.payTo,
    rpc_url: devnet.rpcUrl,
    signer_key_file: signerFile,
    minimum_payment: 1,
  }
  writeFileSync(config, JSON.stringify({ ...common, networks: [network] }))
  return { chain: { stop: async () => void process.kill(devnet.pid) }, keys, config }
}

/** Sends a paid request of each buyer at the same moment; returns the seconds until the last has its answer. */
async function buyAtOnce(port: number, payers: readonly Buffer[]): Promise<number> {
  const requests = await Promise.all(
    payers.map(async (key, at) => {
      const unpaid = { path: '/list', body: makeBody(at, collection) }
      return makePaidRequest(unpaid, signExact(await readRequirements(port, unpaid), key))
    }),
  )
  const load = { port, connections: payers.length, requests, status: 200 }
  return requireNoFailure(await drive(load)).seconds
}

/** Counts the transactions, and the payments that did not move their own money, or whose transaction was reverted. */
async function countSettled({
  database,
}: Place): Promise<{ failed: number; transactions: number }> {
  const [row] = await database.query<{ failed: bigint; transactions: bigint }>(sql`
    SELECT (SELECT count(*) FROM operations.claim WHERE settled_by IS NULL)
      + (SELECT count(*) FROM operations.transaction_journal WHERE state = 'reverted') AS failed,
      (SELECT count(*) FROM operations.transaction_journal) AS transactions`)
  return { failed: Number(row?.failed ?? 0), transactions: Number(row?.transactions ?? 0) }
}
