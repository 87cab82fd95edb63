import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openPlace, type Place } from './place.ts'
import { runLog } from './run-log.ts'
import { runMarket } from './run-market.ts'

/** npm run simulate takes more of them. */
const seeds = Array.from({ length: 50 }, (_, at) => at + 1)
const scenes = { log: runLog, market: runMarket }

let place: Place

beforeAll(async () => {
  place = await openPlace()
})
afterAll(() => place.close())

describe.each(['log', 'market'] as const)('%s', (scene) => {
  test.each(seeds)('seed %i keeps every promise, whatever goes wrong', async (seed) => {
    const { problems, trace } = await scenes[scene](`${scene} ${seed}`, place)
    const story = `${trace.slice(-80).join('\n')}\nnpm run simulate -- --only ${scene} --seeds 1 --from ${seed}`
    expect(problems, story).toEqual([])
  })

  test('the same seed is the same run, step by step', async () => {
    const seed = `${scene} twice`
    const first = await scenes[scene](seed, place)
    const second = await scenes[scene](seed, place)
    expect(first.trace.length).toBeGreaterThan(50)
    expect(second.trace).toEqual(first.trace)
  })
})
