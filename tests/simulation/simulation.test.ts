import { findHead, takeShare } from '@tollbase/testing/by-commit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { listPairs } from './payment-pairs.ts'
import { openPlace, type Place } from './place.ts'
import { runLog } from './run-log.ts'
import { runMarket } from './run-market.ts'
import { chooseFirstSeed, found } from './seeds.ts'

/** As many for each scene; npm run simulate takes more of them. */
const seedsCount = 25
const { first, why } = chooseFirstSeed(findHead(import.meta.dirname))
const last = first + seedsCount - 1
const fresh = Array.from({ length: seedsCount }, (_, at) => first + at)
const scenes = { log: runLog, market: runMarket }

/** The pairs of a payment's state and an event that happened in the runs of these tests. */
const happened = new Set<string>()

let place: Place

beforeAll(async () => {
  console.log(`the simulation takes the seeds ${first} to ${last} (${why})`)
  place = await openPlace()
})
afterAll(() => place.close())

describe.each(['log', 'market'] as const)('the simulation of the %s', (scene) => {
  // At once, as half of a run's time is the database's.
  test.concurrent.each([...takeShare(found[scene], 3), ...fresh])(
    'seed %i keeps every promise, whatever goes wrong',
    async (seed) => {
      const { problems, trace, pairs = [] } = await scenes[scene](`${scene} ${seed}`, place)
      for (const pair of pairs) happened.add(pair)
      const story = `${trace.slice(-80).join('\n')}\nnpm run simulate -- --only ${scene} --seeds 1 --from ${seed}`
      expect(problems, story).toEqual([])
    },
    // Fifteen seconds alone; three at once beside everything else take longer.
    180_000,
  )

  test('the same seed is the same run, step by step', async () => {
    const seed = `${scene} twice`
    const once = await scenes[scene](seed, place)
    const again = await scenes[scene](seed, place)
    expect(once.trace.length).toBeGreaterThan(50)
    expect(again.trace).toEqual(once.trace)
  }, 180_000)
})

test('nothing that the table of payments calls impossible happened to any payment', () => {
  const impossible = new Set(listPairs({ possible: false }))
  expect([...happened].filter((pair) => impossible.has(pair))).toEqual([])
  expect([...happened]).toContain('answered + charged')
})

test('each commit has seeds of its own, and without git they are the same', () => {
  const one = chooseFirstSeed('0123456789abcdef0123456789abcdef01234567')
  const other = chooseFirstSeed('f123456789abcdef0123456789abcdef01234567')
  expect(one).toEqual({ first: 20_088_743, why: 'by commit 0123456789ab' })
  expect(other.first).not.toBe(one.first)
  expect(Number.isSafeInteger(other.first + seedsCount)).toBe(true)
  expect(chooseFirstSeed(findHead('/'))).toEqual(chooseFirstSeed(undefined))
})
