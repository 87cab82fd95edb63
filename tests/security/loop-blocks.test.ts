import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectQuick, type HeldPlace, many, openHeldPlace, root } from './held-loop.ts'

/** To read the block at once, and to decode all of its entries, took 100 to 150 ms. */
const mostMs = 60

let place: HeldPlace
let task: string
let height: number

beforeAll(async () => {
  place = await openHeldPlace()
  const data = many(9_000, (at) => ({ id: `long ${at}`, text: 'x'.repeat(480) }))
  const { app, service } = place
  const body = { root, data }
  const stored = await service.request('POST', '/store', { body, headers: app.headers })
  expect(stored.status, stored.text).toBe(202)
  task = String(stored.body.ticket_id)
  height = Number(/block (\d+)/.exec(stored.text)?.[1])
}, 60_000)
afterAll(() => place?.close())

describe('a request that reads from a block of megabytes does not hold the event loop', () => {
  test.each([
    () => `/task/${task}`,
    () => '/api/apps/loopy/tasks',
    () => `/api/apps/loopy/chain/blocks/${height}`,
    () => `/api/apps/loopy/chain/proof?height=${height}&sequence=8999`,
    () => '/api/apps/loopy/chain/proof?collection=open&key=long%207',
    () => '/api/apps/loopy/collections/open/changes?limit=1000',
  ])('%s', async (makePath) => {
    const path = makePath()
    await expectQuick(place.client, { method: 'GET', path }, mostMs)
    await expectQuick(place.client, { method: 'GET', path, headers: place.app.headers }, mostMs)
  })
})
