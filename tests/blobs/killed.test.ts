import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { readConfig } from '../../packages/server/src/config/config.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { takeShare } from '../support/by-commit.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Json, send } from '../support/service.ts'

/** The time-out is for a slow day: each test waits for a program, its database and an audit. */
vi.setConfig({ testTimeout: 240_000 })

const folder = mkdtempSync(join(tmpdir(), 'tollbase-blobs-'))
const configFile = join(folder, 'config.json')
const dataDir = join(folder, 'data')
const planted = 'Vx5Lp9Qs2Bd7'
const bytes = planted.repeat(20_000)
let program: Program
let url = ''
let key: Readonly<Record<string, string>> = {}

beforeAll(async () => {
  writeFileSync(configFile, JSON.stringify({ encryption_update_price: '0' }))
  await start()
  const operator = readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()
  const headers = { authorization: `Bearer ${operator}` }
  const made = await send(url, {
    ...{ method: 'POST', path: '/api/apps', headers },
    body: { name: 'shop', app_id: 'shop' },
  })
  key = { 'x-app-key': made.body.app_key }
  await call('POST', '/encryption', { private_app: true })
}, 120_000)
afterAll(async () => {
  await program?.end('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

async function start(): Promise<void> {
  program = startProgram(dataDir, [`--config=${configFile}`])
  url = await program.url
}

function call(method: string, path: string, body?: unknown) {
  const more = body === undefined ? {} : { body }
  return send(url, { method, path: `/api/apps/shop${path}`, headers: key, ...more })
}

async function upload(step: string): Promise<Json> {
  const form = new FormData()
  form.append('blob', new Blob([bytes]), 'scan')
  form.append('metadata', JSON.stringify({ step }))
  const path = `${url}/api/apps/shop/blobs/scans?wait=true`
  return (await fetch(path, { method: 'POST', body: form, headers: key })).json()
}

async function listRows(step: string): Promise<Json[]> {
  const body = { root: 'shop::scans', find: { step } }
  const { status, body: found } = await send(url, {
    ...{ method: 'POST', path: '/list', headers: key, body },
  })
  return status === 404 ? [] : found.records
}

/** Each step of an upload, and the rows that it may have left. */
const steps: readonly (readonly [Failpoint, readonly number[]])[] = [
  ['blob.received', [0]],
  ['blob.published', [0]],
  ['block.beforeCommit', [0]],
  // The service's own chain has blocks, too.
  ['block.afterCommit', [0, 1]],
  ['store.beforeReply', [1]],
]

test.each(takeShare(steps, 2))(
  'an encrypted upload that is killed at %s is whole or not there, and leaves nothing to be read',
  async (point, counts) => {
    // The collection is there, so that the next block of the application is that of the row.
    await upload('first')
    await program.arm({ point, act: 'service', time: 1 })
    await Promise.all([upload(point).catch(() => undefined), program.killed()])
    await program.ended
    const found = await audit(readConfig({ dataDir }, {}), () => undefined)
    expect(found.difference).toBeUndefined()
    for (const file of listFiles()) expect(readFileSync(file).includes(planted), file).toBe(false)
    await start()
    const rows = await listRows(point)
    expect(counts).toContain(rows.length)
    const { blob_id: id } = rows[0] ?? (await upload(point))
    const read = await call('GET', `/blobs/scans/${id}?format=raw`)
    expect([read.status, read.text === bytes]).toEqual([200, true])
    expect(readdirSync(join(dataDir, 'blobs', 'incoming'))).toEqual([])
  },
)

let tries = 0

/** Each step of a resumable upload. */
const resumableSteps: readonly Failpoint[] = [
  'upload.created',
  'upload.appended',
  'upload.whole',
  'blob.published',
  'upload.stored',
]

test.each(takeShare(resumableSteps, 2))(
  'an encrypted resumable upload that is killed at %s goes on after it, stores the blob, and leaves nothing else to be read',
  async (point) => {
    // Its own name in each try: an upload that is not resumable may be killed at the same point.
    tries += 1
    const step = `${point} ${tries}`
    await program.arm({ point, act: 'service', time: 1 })
    const upload = await begin(step)
    await Promise.all([sendRest(upload).catch(() => undefined), program.killed()])
    await program.ended
    const found = await audit(readConfig({ dataDir }, {}), () => undefined)
    expect(found.difference).toBeUndefined()
    for (const file of listFiles()) expect(readFileSync(file).includes(planted), file).toBe(false)
    await start()
    // A client without an answer begins anew.
    const { body } = await sendRest(upload ?? (await begin(step)))
    expect(body.status).toBe('stored')
    // It is stored once its block is committed; the tables follow.
    const look = async () => {
      const read = await call('GET', `/blobs/scans/${body.blob_id}?format=raw`)
      return [read.status, read.text === bytes]
    }
    await expect.poll(look, { timeout: 20_000 }).toEqual([200, true])
    expect(await listRows(step)).toHaveLength(1)
  },
)

/** Begins an upload; gives its path, where it is answered. */
async function begin(step: string): Promise<string | undefined> {
  const metadata = Buffer.from(JSON.stringify({ step })).toString('base64')
  const headers = {
    ...key,
    'upload-length': String(bytes.length),
    'upload-metadata': `metadata ${metadata}`,
  }
  const path = '/api/apps/shop/blobs/scans/uploads'
  const begun = await send(url, { method: 'POST', path, headers }).catch(() => undefined)
  return begun?.headers.get('location') ?? undefined
}

/** Sends what is missing in two requests, as a client does that was broken off; gives how the upload is then. */
async function sendRest(path = ''): Promise<Json> {
  const look = () => send(url, { method: 'GET', path, headers: key })
  for (const end of [150_000, bytes.length]) {
    const { offset } = (await look()).body
    if (offset >= end) continue
    const type = { 'content-type': 'application/offset+octet-stream' }
    const headers = { ...key, ...type, 'upload-offset': String(offset) }
    const sent = await send(url, { method: 'PATCH', path, headers, raw: bytes.slice(offset, end) })
    expect(sent.status, sent.text).toBe(204)
  }
  return look()
}

function listFiles(): string[] {
  const entries = readdirSync(dataDir, { withFileTypes: true, recursive: true })
  return entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
}
