import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { realWorld } from '@tollbase/server/base/world'
import { findFreePort, findProcess, spawnAnvil, stopProcess } from '@tollbase/server/devnet/anvil'
import { openRpc, type Rpc } from '@tollbase/server/x402/rpc'
import { deriveAddress } from '@tollbase/server/x402/signature'
import { makeItem } from './documents.ts'
import { app, call, createApplication, openPlace, startOurs } from './place.ts'
import type { Benchmark, Row } from './report.ts'

const records = 1_000
const waits = 40
/** Seconds of a block of the other chain. */
const blockSeconds = 2

/** The gas of publishing, and how many blocks of the other chain pass until a record's proof ends there. */
export const publishing: Benchmark = {
  name: 'publishing',
  run: async ({ nodeOptions }) => {
    const [place, chain] = [await openPlace(), await startChain()]
    const service = await startOurs(place, { nodeOptions, config: chain.config })
    try {
      const key = await createApplication(service.port)
      return [
        ...(await measureWaits({ port: service.port, key, rpc: chain.rpc })),
        ...(await measureGas({ port: service.port, key, rpc: chain.rpc })),
      ]
    } finally {
      await service.stop()
      await chain.stop()
      await place.close()
    }
  },
}

type Scene = { readonly port: number; readonly key: string; readonly rpc: Rpc }

const keys = { anchors: '5a'.repeat(32), publisher: '6b'.repeat(32) }

async function startChain() {
  const folder = mkdtempSync(join(tmpdir(), 'tollbase-bench-'))
  const port = await findFreePort(undefined)
  const { pid } = spawnAnvil({
    ...{ folder, stateFile: undefined, chainId: 31337, genesisTime: 1_700_000_000, port },
  })
  const running = pid === undefined ? undefined : findProcess(pid)
  if (running === undefined) throw new Error('the chain did not start')
  const url = `http://127.0.0.1:${port}`
  const rpc = openRpc({ url, world: realWorld })
  for (let isUp = false; !isUp; ) {
    isUp = await rpc.call('eth_chainId', []).then(
      () => true,
      () => false,
    )
  }
  const setting = (name: keyof typeof keys) => {
    const file = join(folder, name)
    writeFileSync(file, `0x${keys[name]}`, { mode: 0o600 })
    return {
      ...{ network: 'eip155:31337', rpc_url: url, signer_key_file: file },
      ...{ interval_seconds: 1, confirmations: 1 },
    }
  }
  for (const name of ['anchors', 'publisher'] as const)
    await rpc.call('anvil_setBalance', [getSigner(name), '0xde0b6b3a7640000'])
  await rpc.call('evm_setIntervalMining', [blockSeconds])
  const config = join(folder, 'tollbase.config.json')
  const settings = { anchors: [setting('anchors')], publishers: [setting('publisher')] }
  writeFileSync(config, JSON.stringify({ rate_limits: 'off', access_log: false, ...settings }))
  return {
    rpc,
    config,
    stop: async () => {
      rpc.close()
      await stopProcess(running, realWorld)
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function getSigner(name: keyof typeof keys): string {
  return deriveAddress(Buffer.from(keys[name], 'hex'))
}

/** Stores a record at any moment of a block, and counts the blocks until its proof has an anchor. */
async function measureWaits({ port, key, rpc }: Scene): Promise<Row[]> {
  const root = `${app}::waits`
  const counts: number[] = []
  for (let at = 0; at < waits; at++) {
    await realWorld.sleep((at * 370) % 2_000)
    await call(port, '/store?wait=true', { body: { root, data: [{ id: `r${at}` }] }, key })
    const head = Number(await rpc.call('eth_blockNumber', []))
    const path = `http://127.0.0.1:${port}/api/apps/${app}/collections/waits/records/r${at}/proof`
    for (;;) {
      const reply = await fetch(path, { headers: { 'x-app-key': key } })
      const proof: { anchor?: { block_number: number } } = JSON.parse(await reply.text())
      if (proof.anchor !== undefined) {
        counts.push(proof.anchor.block_number - head)
        break
      }
      await realWorld.sleep(50)
    }
  }
  // The first waits for the contract, which is made once for each chain.
  const sorted = counts.slice(1).sort((a, b) => a - b)
  const get = (part: number) => sorted[Math.ceil(part * sorted.length) - 1] ?? 0
  return [
    {
      name: 'from the commit of a record to its anchor',
      unit: '',
      value: `p50 ${get(0.5)}, p95 ${get(0.95)}, most ${get(1)} blocks`,
      note: `aim: p95 of 2 blocks of the other chain; anvil with a block every ${blockSeconds} seconds, one confirmation, an interval of 1 second, ${waits - 1} records at all moments`,
    },
  ]
}

async function measureGas({ port, key, rpc }: Scene): Promise<Row[]> {
  const body = { name: 'items', access_policy: 'public' }
  await call(port, `/api/apps/${app}/collections`, { body, key })
  const at = `http://127.0.0.1:${port}/api/apps/${app}`
  const headers = { 'x-app-key': key, 'content-type': 'application/json' }
  await fetch(at, { method: 'PATCH', headers, body: JSON.stringify({ publish: 'plaintext' }) })
  const before = await awaitPublished(at, headers, rpc)
  const data = Array.from({ length: records }, (_, n) => makeItem(n, records))
  await call(port, '/store?wait=true', { body: { root: `${app}::items`, data }, key })
  const after = await awaitPublished(at, headers, rpc)
  const bytes = data.reduce((sum, item) => sum + JSON.stringify(item).length, 0)
  return [
    {
      name: `gas of ${records} records as data`,
      unit: '',
      value: `${(after - before).toLocaleString('en')} gas`,
      note: `${bytes.toLocaleString('en')} bytes of JSON in one block, compressed; anvil, EIP-7623`,
    },
  ]
}

/** Waits until all blocks are published, and returns the gas that was used for all that was. */
async function awaitPublished(
  at: string,
  headers: Readonly<Record<string, string>>,
  rpc: Rpc,
): Promise<number> {
  for (;;) {
    const reply = await fetch(at, { headers })
    const application: { publish: { chains: { height: number; of: number }[] } } = JSON.parse(
      await reply.text(),
    )
    const [one] = application.publish.chains
    if (one !== undefined && one.height === one.of) return sumGas(rpc)
    await realWorld.sleep(100)
  }
}

type Transaction = { readonly from: string; readonly hash: string; readonly input: string }

/** Sums the gas of the publisher's calls with data. */
async function sumGas(rpc: Rpc): Promise<number> {
  const head = Number(await rpc.call('eth_blockNumber', []))
  let gas = 0
  for (let number = 1; number <= head; number++) {
    const block = await rpc.call('eth_getBlockByNumber', [`0x${number.toString(16)}`, true])
    const { transactions } = block as { readonly transactions: readonly Transaction[] }
    for (const { from, hash } of transactions) {
      if (from !== getSigner('publisher')) continue
      const receipt = await rpc.call('eth_getTransactionReceipt', [hash])
      gas += Number((receipt as { readonly gasUsed: string }).gasUsed)
    }
  }
  return gas
}
