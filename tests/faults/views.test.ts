import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { ask } from '../support/buyer.ts'
import type { Act } from '../support/kill.ts'
import type { Json, TestApp } from '../support/service.ts'
import { insist, openPlace, type Place, readBooks } from './place.ts'

/** The time-out is for a slow day: each test waits for a program and a view. */
vi.setConfig({ testTimeout: 240_000 })

let place: Place
let app: TestApp
beforeAll(async () => {
  place = await openPlace()
  app = await place.service.createApp()
})
afterAll(() => place?.close())

const points: readonly Failpoint[] = ['view.beforeFilled', 'view.beforeLive', 'view.committed']
const acts: readonly Act[] = ['service', 'database']
const cases = points.flatMap((point) => acts.map((act) => ({ point, act })))
let number = 0

/** Repeats a request as a client does that must succeed in the end, whatever dies. */
async function call(method: string, path: string, body?: object) {
  const asked = { method, path, headers: app.headers, ...(body && { raw: JSON.stringify(body) }) }
  return insist(place.service, asked)
}

const root = (name: string) => `${app.appId}::${name}`

async function rows(name: string): Promise<Json[]> {
  const { body, text, status } = await call('POST', '/list', { root: root(name), sortBy: 'market' })
  expect(status, text).toBe(200)
  return body.records
}

function makeStatusReader(name: string) {
  return async () => (await call('GET', `/api/apps/${app.appId}/views/${name}`)).body.status
}

test.each(cases)('a view becomes whole though the $act is killed at $point', async (kill) => {
  const { point, act } = kill
  number += 1
  const [sales, view] = [`sales${number}`, `totals${number}`]
  const data = Array.from({ length: 30 }, (_, n) => ({
    id: `s${n}`,
    market: `m${n % 3}`,
    amount: n,
  }))
  await call('POST', '/store?wait=true', { root: root(sales), data })
  const program = place.program()
  await program.arm({ point, act, time: 1 })
  const definition = {
    name: view,
    source_collections: [sales],
    query: { select: ['market'], group_by: ['market'], aggregate: { total: { $sum: 'amount' } } },
    refresh_mode: 'live',
  }
  const path = `/api/apps/${app.appId}/views`
  const asked = { method: 'POST', path, headers: app.headers, raw: JSON.stringify(definition) }
  const creating = ask(place.service, asked).catch(() => undefined)
  await program.killed()
  if (act === 'service') {
    await program.ended
    const { report } = await readBooks(place.dataDir)
    expect(report.difference).toBeUndefined()
    await place.start()
  }
  await creating
  await expect.poll(makeStatusReader(view), { timeout: 60_000, interval: 100 }).toBe('live')
  const more = [
    { id: 's0', market: 'm0', amount: 1000 },
    { id: 's1', deleted: true },
  ]
  await call('POST', '/store?wait=true', { root: root(sales), data: more })
  expect(await rows(view)).toEqual([
    { market: 'm0', total: 1135 },
    { market: 'm1', total: 144 },
    { market: 'm2', total: 155 },
  ])
})

test('every view is what its definition says after all of these faults', async () => {
  await place.program().end('SIGTERM')
  const { report } = await readBooks(place.dataDir)
  expect(report.difference).toBeUndefined()
  await place.start()
})
