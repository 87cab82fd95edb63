import { afterAll, beforeAll, describe, test } from 'vitest'
import { expectQuick, type HeldPlace, many, openHeldPlace, post, toObject } from './held-loop.ts'

/** Turns of 20 to 30 ms remain, such as the insertion of its block of 3 MiB; each record alone took 100 to 200. */
const holdMsMax = 60

let place: HeldPlace
const ids = many(3, (at) => `a${at}`)
beforeAll(async () => {
  place = await openHeldPlace()
  await place.ask('POST', '/api/apps/loopy/collections', { name: 'long' })
  // Close to the largest record, of as many values as fit.
  const parts = toObject(6, (at) => [`p${at}`, toObject(9_900, (one) => [`m${one}`, one])])
  for (const id of ids)
    await place.ask('POST', '/store?wait=true', { root: 'loopy::long', data: [{ id, ...parts }] })
}, 120_000)
afterAll(() => place?.close())

describe('a batch of a few hundred bytes about records of a megabyte', () => {
  const send = (operations: readonly object[]) =>
    expectQuick(
      place.client,
      () => post('/api/apps/loopy/batch', { operations }, place.app.headers),
      holdMsMax,
    )
  const on = (operation: string, more: object) => ({ operation, collection: 'long', ...more })

  test('updates by keys do not hold the event loop', async () => {
    await send(ids.map((id) => on('update', { data: { id, n: 1 } })))
  }, 120_000)
  test('updates by conditions do not hold the event loop', async () => {
    await send([on('update', { data: { n: 7 }, conditions: { id: { gte: 'a' } } })])
  }, 120_000)
  test('deletions do not hold the event loop', async () => {
    await send(ids.map((id) => on('delete', { data: { id } })))
  }, 120_000)
})
