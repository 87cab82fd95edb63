import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { readBooks } from '../faults/place.ts'
import { takeShare } from '../support/by-commit.ts'
import { type Program, startProgram } from '../support/program.ts'
import { send } from '../support/service.ts'

/** The time-out is for a slow day: each test waits for programs and their databases. */
vi.setConfig({ testTimeout: 240_000 })

const folder = mkdtempSync(join(tmpdir(), 'tollbase-changed-blobs-'))
const configFile = join(folder, 'config.json')
const dataDir = join(folder, 'data')
const planted = 'Zp4Wd8Nc6Xe1'
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

const contents = Array.from({ length: 6 }, (_, n) => `${planted} ${n} `.repeat(n * 2_000))

/** The steps of a change in their order, and the time at which each is passed that ends the service. */
const steps: readonly (readonly ['add' | 'remove', Failpoint, number])[] = [
  ['add', 'resealing.filed', 3],
  ['add', 'resealing.prepared', 1],
  ['add', 'resealing.copied', 1],
  ['add', 'resealing.unfiled', 1],
  ['add', 'block.erased', 1],
  ['add', 'resealing.erased', 1],
  ['remove', 'resealing.filed', 3],
  ['remove', 'resealing.copied', 1],
  ['remove', 'resealing.unfiled', 1],
]

test.each(takeShare(steps, 3))(
  'blobs change their encryption (%s) though the service is killed at %s',
  async (action, point, time) => {
    const app = await createApp(`shop-${action}-${point.replace('.', '-')}`)
    const ids = await Promise.all(contents.map((text, n) => app.upload(text, n)))
    if (action === 'remove') {
      await app.call('POST', '/encryption', { action: 'add', collections: ['scans'] })
      await expect.poll(() => app.countDone('encrypt'), { timeout: 30_000 }).toBe(1)
    }
    await program.arm({ point, act: 'service', time })
    const asked = app.call('POST', '/encryption', { action, collections: ['scans'] })
    await Promise.all([asked.catch(() => undefined), program.killed()])
    await program.ended
    expect((await readBooks(dataDir)).report.difference).toBeUndefined()
    await start()
    // The new process goes on by itself.
    const kind = action === 'add' ? 'encrypt' : 'decrypt'
    await expect.poll(() => app.countDone(kind), { timeout: 60_000, interval: 100 }).toBe(1)
    for (const [n, text] of contents.entries()) {
      const found = await app.find(n)
      expect(found === ids[n]).toBe(action === 'remove')
      // By the id that it had at first, too.
      for (const id of [found, ids[n] ?? '']) expect(await app.download(id)).toBe(text)
    }
    if (action === 'add')
      for (const file of listFiles(app.id))
        expect(readFileSync(file).includes(planted), file).toBe(false)
    await program.end('SIGTERM')
    expect((await readBooks(dataDir)).report).toMatchObject({ equal: true })
    await start()
  },
)

/** The files of blobs that are not those of the applications of other tests. */
function listFiles(app: string): string[] {
  const root = join(dataDir, 'blobs', String(numbers.get(app)))
  const paths = readdirSync(root, { recursive: true, encoding: 'utf8' })
  return paths.filter((path) => /[0-9a-f]{64}$/.test(path)).map((path) => join(root, path))
}

const numbers = new Map<string, number>()

async function createApp(id: string) {
  const operator = readFileSync(join(dataDir, 'operator-key'), 'utf8').trim()
  const headers = { authorization: `Bearer ${operator}` }
  const body = { name: id, app_id: id }
  const made = await send(url, { method: 'POST', path: '/api/apps', headers, body })
  expect(made.status, made.text).toBe(201)
  const key = { 'x-app-key': made.body.app_key }
  const call = (method: string, path: string, body?: unknown) =>
    send(url, {
      ...{ method, path: `/api/apps/${id}${path}`, headers: key },
      ...(body !== undefined && { body }),
    })
  return {
    id,
    call,
    upload: async (text: string, n: number) => {
      const form = new FormData()
      form.append('blob', new Blob([text]), 'scan')
      form.append('metadata', JSON.stringify({ n }))
      const path = `${url}/api/apps/${id}/blobs/scans?wait=true`
      const answer = await fetch(path, { method: 'POST', body: form, headers: key })
      const { blob_id }: { blob_id: string } = JSON.parse(await answer.text())
      numbers.set(id, findFolder(blob_id))
      return blob_id
    },
    download: async (blob: string) => {
      const path = `${url}/api/apps/${id}/blobs/scans/${blob}?format=raw`
      return (await fetch(path, { headers: key })).text()
    },
    find: async (n: number) => {
      const body = { root: `${id}::scans`, find: { n } }
      const found = await send(url, { method: 'POST', path: '/list', headers: key, body })
      expect(found.body.records).toHaveLength(1)
      return String(found.body.records[0].blob_id)
    },
    countDone: async (kind: string) => {
      const { tasks } = (await call('GET', '/tasks?limit=1000')).body
      return tasks.filter(
        (one: { operation_type: string; status: string }) =>
          one.operation_type === kind && one.status === 'Completed',
      ).length
    },
  }
}

/** The folder of an application is the newest one that has this blob. */
function findFolder(blob: string): number {
  const sha256 = blob.slice('blob_'.length)
  const paths = readdirSync(join(dataDir, 'blobs'), { recursive: true, encoding: 'utf8' })
  const folders = paths
    .filter((path) => path.endsWith(sha256))
    .map((path) => Number(path.split('/')[0]))
  return Math.max(...folders)
}
