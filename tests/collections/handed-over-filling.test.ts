import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { takeShare } from '@tollbase/testing/by-commit'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { readConfig } from '../../packages/server/src/config/config.ts'
import {
  createTestDatabase,
  type TestDatabase,
} from '../../packages/server/src/database/testing.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { type Data, makeData } from '../support/data.ts'
import { type Program, startProgram } from '../support/program.ts'
import { type Json, send, type TestReply, type TestService } from '../support/service.ts'

/** A process takes the place of one that stands still when the lease of that one is over, after ten seconds. */
vi.setConfig({ testTimeout: 240_000 })

const recoveryMs = 60_000
const total = 3_000
const schema_definition = { properties: { n: { type: 'number' }, city: { type: 'string' } } }

type Item = { readonly id: string; readonly n: number; readonly city: string }

let store: TestDatabase
let folder = ''
let programs: Program[] = []

beforeEach(async () => {
  store = await createTestDatabase()
  folder = mkdtempSync(join(tmpdir(), 'tollbase-handed-over-'))
  const { host, port, user, database } = store.connection
  const url = `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`
  writeFileSync(getConfigFile(), JSON.stringify({ database_url: url }))
  programs = []
})
afterEach(async () => {
  for (const program of programs) await program.end('SIGKILL')
  await store.drop()
  rmSync(folder, { recursive: true, force: true })
})

function getConfigFile(): string {
  return join(folder, 'config.json')
}

/** Starts one more process on the same database and data folder. */
function start(): Program {
  const program = startProgram(folder, [`--config=${getConfigFile()}`])
  programs.push(program)
  return program
}

const points: readonly Failpoint[] = [
  'columns.added',
  'columns.confirmed',
  'columns.filled',
  'columns.whole',
]

test.each(takeShare(points, 4))(
  'two processes take over from one that stands still at %s, one of them is killed, and the first one wakes: every answer is right, and the last ends the filling',
  async (point) => {
    const first = start()
    const { app, records } = await createItems(await first.url)
    await first.arm({ point, act: 'pause', time: point === 'columns.filled' ? 2 : 1 })
    // The answer may never come: the process stands still.
    const declared = app.call('PUT', '/collections/c', { schema_definition }).catch(() => undefined)
    await first.killed()
    const second = start()
    const at = makeItems(await second.url, { app, records })
    // Columns that are whole are filled by nobody.
    const isFilled = point !== 'columns.whole'
    if (isFilled) await second.arm({ point: 'columns.filled', act: 'service', time: 2 })
    await at.change(0).catch(() => undefined)
    if (isFilled) {
      await second.killed()
      expect(await second.ended).toBeNull()
    }
    const last = isFilled ? start() : second
    const items = makeItems(await last.url, { app, records })
    await items.change(0)
    await items.change(1)
    process.kill(first.pid, 'SIGCONT')
    await refuseUntilEnd(first, { app, records })
    await declared
    await items.change(2)
    expect(await items.declare()).toBe(200)
    await expect.poll(items.readTask, { timeout: recoveryMs, interval: 100 }).toBe('Completed')
    await items.change(3)
    expect(await last.end('SIGTERM')).toBe(0)
    const config = readConfig({ dataDir: folder, config: getConfigFile() }, {})
    expect(await audit(config, () => undefined)).toMatchObject({ equal: true })
  },
)

async function createItems(url: string): Promise<{ app: Data; records: Map<string, Item> }> {
  const operator = readFileSync(join(folder, 'operator-key'), 'utf8').trim()
  const { status, body, text } = await send(url, {
    method: 'POST',
    path: '/api/apps',
    headers: { authorization: `Bearer ${operator}` },
    body: { name: 'Shop', app_id: 'shop' },
  })
  expect(status, text).toBe(201)
  const headers = { 'x-app-key': body.app_key }
  const app = makeCalls(url, { appId: 'shop', key: body.app_key, keyHash: body.key_hash, headers })
  await app.create({ name: 'c' })
  const items = Array.from({ length: total }, (_, n) => ({ id: `r${n}`, n, city: `c${n % 7}` }))
  for (let at = 0; at < total; at += 1_000)
    expect((await app.store('c', items.slice(at, at + 1_000))).status).toBe(200)
  return { app, records: new Map(items.map((item) => [item.id, item])) }
}

function makeCalls(url: string, app: Parameters<typeof makeData>[1]): Data {
  const request = (method: string, path: string, options: object = {}): Promise<TestReply> =>
    send(url, { method, path, ...options })
  return makeData({ request } as TestService, app)
}

type Items = { readonly app: Data; readonly records: Map<string, Item> }

/** Makes the calls of one process, whose answers are compared with what was acknowledged by any of them. */
function makeItems(url: string, { app, records }: Items) {
  const calls = makeCalls(url, app)
  return {
    /** Stores new items and new versions of some that were there from the first, as a client that insists. */
    change: async (round: number) => {
      const changed = Array.from({ length: 40 }, (_, n) => {
        const id = n < 20 ? `r${total + round * 20 + n}` : `r${(n * 149 + round * 31) % total}`
        return { id, n: 1_000 * round + n, city: `new ${round}` }
      })
      const end = Date.now() + recoveryMs
      for (;;) {
        const { status, text } = await calls.store('c', changed)
        if (status === 200) break
        if (status !== 503 || Date.now() > end) throw new Error(`${status} ${text}`)
        await wait(50)
      }
      for (const item of changed) records.set(item.id, item)
      const reply = await sum(url, app)
      expect(reply.status, reply.text).toBe(200)
      expect(reply.body.data).toEqual(sumItems(records))
    },
    /** The definition may have been lost with the process that was to acknowledge it. */
    declare: async () => (await calls.call('PUT', '/collections/c', { schema_definition })).status,
    readTask: async () =>
      (await calls.call('GET', '/tasks?limit=1000')).body.tasks?.find(
        (one: Json) => one.operation_type === 'fill_columns',
      )?.status,
  }
}

/** Checks that a process whose place was taken acknowledges nothing, gives no old answer, and ends by itself. */
async function refuseUntilEnd(program: Program, { app, records }: Items): Promise<void> {
  const url = await program.url
  const calls = makeCalls(url, app)
  let isOver = false
  const ended = program.ended.finally(() => {
    isOver = true
  })
  while (!isOver) {
    const [stored, read] = await Promise.all([
      calls.store('c', [{ id: 'r1', n: 7, city: 'lost' }]).catch(() => undefined),
      sum(url, app).catch(() => undefined),
    ])
    if (stored !== undefined) expect(stored.status, stored.text).toBe(503)
    if (read?.status === 200) expect(read.body.data).toEqual(sumItems(records))
    else if (read !== undefined) expect(read.status, read.text).toBe(503)
    await wait(10)
  }
  expect(await ended).toBe(1)
}

function sum(url: string, app: Data): Promise<TestReply> {
  const sql = 'SELECT city, count(*) AS n, sum(n) AS s FROM shop::c GROUP BY city ORDER BY city'
  return send(url, { method: 'POST', path: '/query/sql', body: { sql }, headers: app.headers })
}

function sumItems(records: ReadonlyMap<string, Item>) {
  const sums = new Map<string, { city: string; n: number; s: number }>()
  for (const { city, n } of records.values()) {
    const known = sums.get(city) ?? { city, n: 0, s: 0 }
    sums.set(city, { city, n: known.n + 1, s: known.s + n })
  }
  return [...sums.values()].sort((one, other) => (one.city < other.city ? -1 : 1))
}
