import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { takeShare } from '@tollbase/testing/by-commit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { readBooks } from '../faults/place.ts'
import { type Data, makeData } from '../support/data.ts'
import type { Act } from '../support/kill.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Json, send, type TestReply, type TestService } from '../support/service.ts'

/** The time-out is for a slow day: each test waits for programs and their databases. */
vi.setConfig({ testTimeout: 240_000 })

const dataDir = mkdtempSync(join(tmpdir(), 'tollbase-filling-'))
let program: Program
let url = ''

beforeAll(async () => {
  program = startProgram(dataDir)
  url = await program.url
}, 120_000)
afterAll(async () => {
  await program?.end('SIGTERM')
  rmSync(dataDir, { recursive: true, force: true })
})

const points: readonly Failpoint[] = [
  'columns.added',
  'columns.confirmed',
  'columns.filled',
  'columns.whole',
]
const acts: readonly Act[] = ['service', 'both', 'database']
const kills = points.flatMap((point) => acts.map((act) => ({ point, act })))

test.each(takeShare(kills, 4))(
  'columns become whole though $act is killed at $point, and what is stored meanwhile is in them',
  async ({ point, act }) => {
    const app = await createApp(`shop-${point.split('.')[1]}-${act}`)
    await app.create({ name: 'c' })
    const data = Array.from({ length: 3_000 }, (_, n) => ({
      id: `r${n}`,
      n,
      city: `city ${n % 7}`,
    }))
    for (let at = 0; at < data.length; at += 1_000) await app.store('c', data.slice(at, at + 1_000))
    await program.arm({ point, act, time: 1 })
    const properties = { n: { type: 'number' }, city: { type: 'string' } }
    const declared = app.call('PUT', '/collections/c', { schema_definition: { properties } })
    await Promise.all([declared.catch(() => undefined), program.killed()])
    if (act !== 'database') {
      await program.ended
      expect((await readBooks(dataDir)).report.difference).toBeUndefined()
      program = startProgram(dataDir)
      url = await program.url
    }
    const store = async (from: number) => {
      const more = Array.from({ length: 50 }, (_, n) => ({ id: `r${from + n}`, n: 1, city: 'new' }))
      return (await app.store('c', more)).status
    }
    await expect.poll(() => store(2_990), { timeout: 60_000, interval: 200 }).toBe(200)
    // A definition may have been lost with the process that was to acknowledge it.
    expect(
      (await app.call('PUT', '/collections/c', { schema_definition: { properties } })).status,
    ).toBe(200)
    const task = async () =>
      (await app.call('GET', '/tasks?limit=1000')).body.tasks?.find(
        (one: Json) => one.operation_type === 'fill_columns',
      )?.status
    await expect.poll(task, { timeout: 60_000, interval: 100 }).toBe('Completed')
    expect(await store(3_020)).toBe(200)
    const query = `SELECT city, count(*) AS n, sum(n) AS s FROM "${app.appId}"::c GROUP BY city ORDER BY city`
    const reply = await send(url, {
      method: 'POST',
      path: '/query/sql',
      body: { sql: query },
      headers: app.headers,
    })
    expect(reply.status, reply.text).toBe(200)
    const now = new Map(data.map((one) => [one.id, one]))
    for (let n = 2_990; n < 3_070; n++) now.set(`r${n}`, { id: `r${n}`, n: 1, city: 'new' })
    const sums = new Map<string, { city: string; n: number; s: number }>()
    for (const { city, n } of now.values()) {
      const known = sums.get(city) ?? { city, n: 0, s: 0 }
      sums.set(city, { city, n: known.n + 1, s: known.s + n })
    }
    const expected = [...sums.values()].sort((one, other) => (one.city < other.city ? -1 : 1))
    expect(reply.body.data).toEqual(expected)
    await program.end('SIGTERM')
    expect((await readBooks(dataDir)).report).toMatchObject({ equal: true })
    program = startProgram(dataDir)
    url = await program.url
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
