import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { takeShare } from '@tollbase/testing/by-commit'
import { anchoredTopic, hashOrigin } from '@tollbase/verify/anchor'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { recoverLog } from '../../packages/server/src/operator/recover/recover-log.ts'
import { deriveAddress } from '../../packages/server/src/x402/signature.ts'
import { readBooks } from '../faults/place.ts'
import { type Data, makeData } from '../support/data.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Json, send, type TestReply, type TestService } from '../support/service.ts'
import { type OuterChain, startOuterChain, writeTemporary } from './place.ts'

/** The time-out is for a slow day: each test waits for programs and their databases. */
vi.setConfig({ testTimeout: 240_000 })

const keyHex = `0x${'7c'.repeat(32)}`
const signer = deriveAddress(Buffer.from(keyHex.slice(2), 'hex'))
const folder = mkdtempSync(join(tmpdir(), 'tollbase-publishing-'))
const configFile = join(folder, 'config.json')
const dataDir = join(folder, 'data')
let chain: OuterChain
let program: Program
let url = ''

beforeAll(async () => {
  chain = await startOuterChain()
  await chain.call('anvil_setBalance', signer, '0xde0b6b3a7640000')
  const publisher = {
    network: 'eip155:31337',
    rpc_url: chain.url,
    signer_key_file: writeTemporary('key', keyHex),
    interval_seconds: 1,
    confirmations: 1,
  }
  writeFileSync(configFile, JSON.stringify({ publishers: [publisher] }))
  await start()
  // The contract is made before anything is killed.
  await awaitPublished(await publishApp('first-of-all'))
}, 120_000)
afterAll(async () => {
  await program?.end('SIGTERM')
  await chain?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(): Promise<void> {
  program = startProgram(dataDir, [`--config=${configFile}`])
  url = await program.url
}

const points: readonly Failpoint[] = [
  'publication.kept',
  'payment.journaled',
  'payment.broadcast',
  'publication.sent',
  'publication.confirmed',
]

test.each(takeShare(points, 2))(
  'a service that is killed at %s publishes each block once',
  async (point) => {
    await program.arm({ point, act: 'service', time: 1 })
    const app = await publishApp(`shop-${point.replace('.', '-')}`)
    await program.killed()
    await program.ended
    expect((await readBooks(dataDir)).report.difference).toBeUndefined()
    await start()
    const { key, height, root } = await awaitPublished(app)
    const to = mkdtempSync(join(folder, 'recovered-'))
    const report = await recoverLog({ rpc: chain.url, key, to }, () => undefined)
    expect(report).toMatchObject({ equal: true, blocks: height, root })
    const logs = await chain.call('eth_getLogs', {
      ...{ fromBlock: '0x0', toBlock: 'latest' },
      topics: [anchoredTopic, null, hashOrigin(key.slice(0, key.indexOf('+')))],
    })
    const inputs = await Promise.all(
      logs.map((log: Json) => chain.call('eth_getTransactionByHash', log.transactionHash)),
    )
    expect(new Set(inputs.map(({ input }) => input)).size).toBe(inputs.length)
  },
)

async function publishApp(id: string): Promise<Data> {
  const request = (method: string, path: string, options: object = {}): Promise<TestReply> =>
    send(url, { method, path, ...options })
  const operator = readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()
  const { status, body, text } = await request('POST', '/api/apps', {
    headers: { authorization: `Bearer ${operator}` },
    body: { name: id, app_id: id },
  })
  expect(status, text).toBe(201)
  const headers = { 'x-app-key': body.app_key }
  const app = makeData({ request } as TestService, {
    appId: id,
    key: body.app_key,
    keyHash: body.key_hash,
    headers,
  })
  await app.publish('open', [{ id: 'a' }, { id: 'b' }])
  await app.call('PATCH', '', { publish: 'plaintext' })
  return app
}

/** Waits until all blocks are published, and returns the checkpoint. */
async function awaitPublished(app: Data): Promise<Json> {
  const { body: checkpoint } = await app.call('GET', '/chain/checkpoint')
  await vi.waitFor(
    async () => {
      const [published] = (await app.call('GET', '')).body.publish.chains
      expect(published?.height).toBe(checkpoint.height)
    },
    { timeout: 60_000, interval: 200 },
  )
  return checkpoint
}
