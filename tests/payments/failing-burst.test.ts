import { limits } from '@tollbase/contract/limits'
import { realWorld } from '@tollbase/server/base/world'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { settle, startHeldChain } from './held-chain.ts'

let held: Awaited<ReturnType<typeof startHeldChain>>

beforeAll(async () => {
  held = await startHeldChain(2)
})

afterAll(() => held?.close())

/** Makes payments of 10 by one wallet, which has enough for all of them. */
function makeDues(count: number) {
  const first = held.makeDue({ value: 10n, isAlone: true })
  const { key } = first
  const others = Array.from({ length: count - 1 }, () =>
    held.makeDue({ key, value: 10n, isAlone: true }),
  )
  return [first, ...others]
}

test('of many payments at once by a wallet that has made none, eight are sent, and three more at most where they fail', async () => {
  const place = await held.open()
  const dues = makeDues(60)
  const all = Promise.all(dues.map((due) => settle(place, due)))
  const listSent = async () => {
    const rows = await Promise.all(dues.map(({ id }) => place.sender.find(id)))
    return dues.filter((_, at) => rows[at] !== undefined)
  }
  await expect.poll(async () => (await listSent()).length).toBeGreaterThanOrEqual(8)
  await realWorld.sleep(200)
  const sent = await listSent()
  for (const due of sent) await held.harms.canceled(due)
  const outcomes = await held.mineUntil(all)
  expect(sent).toHaveLength(8)
  // One more for each of those that are not too many.
  const { length } = await listSent()
  expect(length).toBeLessThanOrEqual(8 + limits.failedPaymentsMax)
  const refused = outcomes.filter((one) => one.state === 'failed' && one.reason === 'failed_before')
  expect(refused).toHaveLength(dues.length - length)
  await place.sender.stop()
})

test('each payment that was made lets its wallet have one more under way, so that all of many good ones are made soon', async () => {
  const place = await held.open()
  const dues = makeDues(100)
  const outcomes = await held.mineUntil(Promise.all(dues.map((due) => settle(place, due))))
  expect(outcomes.map(({ state }) => state)).toEqual(dues.map(() => 'settled'))
  const blocks = new Set(outcomes.map((one) => (one.state === 'settled' ? one.blockNumber : 0n)))
  expect(blocks.size).toBeGreaterThan(1)
  await place.sender.stop()
})
