import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { takeShare } from '@tollbase/testing/by-commit'
import { type LoopbackNode, startLoopbackNode } from '@tollbase/testing/celestia/node'
import { encodeBase64 } from '@tollbase/verify/bytes'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import { verifyDocument } from '@tollbase/verify/verify'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { recoverLog } from '../../packages/server/src/operator/recover/recover-log.ts'
import { readBooks } from '../faults/place.ts'
import { type Data, makeData } from '../support/data.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Json, send, type TestReply, type TestService } from '../support/service.ts'

/** The time-out is for a slow day: each test waits for programs and their databases. */
vi.setConfig({ testTimeout: 240_000 })

const folder = mkdtempSync(join(tmpdir(), 'tollbase-celestia-'))
const configFile = join(folder, 'config.json')
const dataDir = join(folder, 'data')
let node: LoopbackNode
let program: Program
let url = ''

beforeAll(async () => {
  node = await startLoopbackNode({ blockMs: 200 })
  const settings = { network: 'cosmos:private', rpc_url: node.url, interval_seconds: 1 }
  writeFileSync(configFile, JSON.stringify({ publishers: [settings], anchors: [settings] }))
  await start()
}, 120_000)
afterAll(async () => {
  await program?.end('SIGTERM')
  await node?.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function start(): Promise<void> {
  program = startProgram(dataDir, [`--config=${configFile}`])
  url = await program.url
}

const points: readonly Failpoint[] = [
  'publication.kept',
  'celestia.journaled',
  'celestia.submitted',
  'celestia.placed',
  'publication.sent',
  'publication.confirmed',
]

test.each(takeShare(points, 2))(
  'a service that is killed at %s has each chunk on Celestia once, and proofs that hold',
  async (point) => {
    const app = await createApp(`shop-${point.replace('.', '-')}`)
    await program.arm({ point, act: 'service', time: 1 })
    // An anchor may pass the point first, so the service may be gone already.
    await choosePlaintext(app).catch(() => undefined)
    await program.killed()
    await program.ended
    expect((await readBooks(dataDir)).report.difference).toBeUndefined()
    await start()
    await choosePlaintext(app)
    const { key, height, root } = await awaitPublished(app)
    const to = mkdtempSync(join(folder, 'recovered-'))
    const report = await recoverLog({ celestia: node.url, key, to }, () => undefined)
    expect(report).toMatchObject({ equal: true, blocks: height, root })
    const namespace = deriveNamespace(app.appId)
    const commitments = node
      .blocks()
      .flatMap(({ square }) => square.blobs)
      .filter((blob) => Buffer.compare(blob.namespace, namespace) === 0)
      .map(({ commitment }) => encodeBase64(commitment))
    expect(new Set(commitments).size).toBe(commitments.length)
    const proof = await readProof(app)
    const { checks, ok } = verifyDocument(JSON.stringify(proof), { trustedKey: key })
    expect(checks.filter((one) => !one.ok)).toEqual([])
    expect(ok).toBe(true)
  },
)

async function createApp(id: string): Promise<Data> {
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
  return app
}

async function choosePlaintext(app: Data): Promise<void> {
  expect((await app.call('PATCH', '', { publish: 'plaintext' })).status).toBe(200)
}

/** Waits until all blocks are published, and returns the checkpoint. */
async function awaitPublished(app: Data): Promise<Json> {
  const { body: checkpoint } = await app.call('GET', '/chain/checkpoint')
  await vi.waitFor(
    async () => {
      const [published] = (await app.call('GET', '')).body.publish.chains
      expect(published?.height).toBe(checkpoint.height)
    },
    { timeout: 90_000, interval: 200 },
  )
  return checkpoint
}

async function readProof(app: Data): Promise<Json> {
  return vi.waitFor(
    async () => {
      const { body } = await app.call('GET', '/collections/open/records/a/proof')
      expect(body.anchor).toBeDefined()
      return body
    },
    { timeout: 90_000, interval: 200 },
  )
}
