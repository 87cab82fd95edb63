import { takeShare } from '@tollbase/testing/by-commit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mutants } from './mutants.ts'
import { openPlace, type Place, type Result } from './place.ts'

/** A mutant that survives more seeds than this is not detected by the simulation. */
const seedsMax = 20

/** The time-out is for a busy machine. */
const timeoutMs = 300_000

type Run = (seed: string, place: Place) => Promise<Result>

let place: Place

beforeAll(async () => {
  place = await openPlace()
})
afterAll(() => place.close())

describe.concurrent.each(takeShare(mutants, 3))(
  'a simulation with the bug $name',
  ({ name, scene, from = 1 }) => {
    test(
      'a run of the simulation with this bug goes wrong',
      async () => {
        const run = await planted(name, scene)
        const problems: string[] = []
        for (let seed = from; seed < from + seedsMax && problems.length === 0; seed++) {
          const result = await run(`${scene} ${seed}`, place)
          problems.push(...result.problems)
        }
        expect(problems).not.toEqual([])
      },
      timeoutMs,
    )
  },
)

/** The simulation over a copy of the service in which the bug is planted (mutant-plugin.ts). */
async function planted(name: string, scene: 'market' | 'log'): Promise<Run> {
  const module = await import(/* @vite-ignore */ `./run-${scene}.ts?mutant=${name}`)
  return scene === 'market' ? module.runMarket : module.runLog
}
