import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { readBooks } from '../faults/place.ts'
import { type Data, makeData } from '../support/data.ts'
import { type Program, startProgram } from '../support/program.ts'
import { send, type TestReply, type TestService } from '../support/service.ts'

/** The time-out is for a slow day: each test waits for programs and their databases. */
vi.setConfig({ testTimeout: 240_000 })

const folder = mkdtempSync(join(tmpdir(), 'tollbase-resealing-'))
const configFile = join(folder, 'config.json')
const dataDir = join(folder, 'data')
let program: Program
let url = ''

beforeAll(async () => {
  writeFileSync(configFile, JSON.stringify({ encryption_update_price: '0' }))
  await start()
}, 120_000)
afterAll(async () => {
  await program?.end('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

async function start(): Promise<void> {
  program = startProgram(dataDir, [`--config=${configFile}`])
  url = await program.url
}

const points: readonly Failpoint[] = ['resealing.copied', 'block.erased']

test.each(points)(
  'a collection becomes encrypted though the service is killed at %s',
  async (point) => {
    const app = await createApp(`shop-${point.split('.')[1]}`.toLowerCase())
    const data = Array.from({ length: 1_200 }, (_, n) => ({ id: `r${n}`, text: `planted ${n}` }))
    await app.store('c', data)
    await program.arm({ point, act: 'service', time: 1 })
    const asked = app.call('POST', '/encryption', { action: 'add', collections: ['c'] })
    await Promise.all([asked.catch(() => undefined), program.killed()])
    await program.ended
    expect((await readBooks(dataDir)).report.difference).toBeUndefined()
    await start()
    // The new process goes on by itself.
    const read = async () => (await app.call('GET', '/encryption')).body.encrypted_collections
    await expect.poll(read, { timeout: 60_000, interval: 100 }).toEqual(['c'])
    const tasks = async () =>
      (await app.call('GET', '/tasks?limit=1000')).body.tasks.find(
        (one: { operation_type: string }) => one.operation_type === 'encrypt',
      ).status
    await expect.poll(tasks, { timeout: 60_000, interval: 100 }).toBe('Completed')
    expect((await app.list('c', { limit: 1 })).body.total).toBe(1_200)
    expect((await app.record('c', 'r700')).body.record).toEqual(data[700])
    await program.end('SIGTERM')
    expect((await readBooks(dataDir)).report).toMatchObject({ equal: true })
    await start()
  },
)

test.each(['plaintext.opened', 'plaintext.copied'] as const)(
  'a plaintext table is filled though the service is killed at %s, and an audit finds nothing',
  async (point) => {
    const app = await createApp(`table-${point.split('.')[1]}`)
    const data = Array.from({ length: 1_200 }, (_, n) => ({ id: `r${n}`, n }))
    const set = { action: 'add', collections: ['c'] }
    await app.create({ name: 'c' })
    expect((await app.call('POST', '/encryption', set)).status).toBe(200)
    await app.store('c', data)
    await program.arm({ point, act: 'service', time: 1 })
    const asked = app.call('POST', '/encryption', { ...set, queryable: true })
    await Promise.all([asked.catch(() => undefined), program.killed()])
    await program.ended
    expect((await readBooks(dataDir)).report.difference).toBeUndefined()
    await start()
    const sum = async () =>
      (await app.list('c', { aggregate: { many: { $count: '*' }, sum: { $sum: 'n' } } })).body
        .records?.[0]
    await expect
      .poll(sum, { timeout: 60_000, interval: 100 })
      .toEqual({ many: 1_200, sum: 719_400 })
    const seen = (await app.call('GET', '/encryption')).body.queryable_collections
    expect(seen).toEqual(['c'])
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
  const app = { appId: id, key: body.app_key, keyHash: body.key_hash, headers }
  return makeData({ request } as TestService, app)
}
