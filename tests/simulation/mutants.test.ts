import { takeShare } from '@tollbase/testing/by-commit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { loadMutant } from './load-mutant.ts'
import { mutants } from './mutants.ts'
import { openPlace, type Place } from './place.ts'

/** A mutant that survives more seeds than this is not detected by the simulation. */
const seedsMax = 20

/** The time-out is for a busy machine. */
const timeoutMs = 600_000

let place: Place

beforeAll(async () => {
  place = await openPlace()
})
afterAll(() => place.close())

describe.concurrent.each(takeShare(mutants, 6))('a simulation with the bug $name', (mutant) => {
  const { scene, from = 1, subject } = mutant
  test(
    'a run of the simulation with this bug goes wrong',
    async () => {
      const run = await loadMutant(mutant)
      const problems: string[] = []
      for (let seed = from; seed < from + seedsMax && problems.length === 0; seed++) {
        const result = await run(`${scene} ${seed}`, place, subject)
        problems.push(...result.problems)
      }
      expect(problems).not.toEqual([])
    },
    timeoutMs,
  )
})

test.each(['market', 'log'] as const)(
  'the %s is right in a copy without a bug, so that a bug is what makes others wrong',
  async (scene) => {
    const mutant = mutants.find((one) => one.scene === scene)
    if (mutant === undefined) throw new Error(`no mutant is of the ${scene}`)
    const run = await loadMutant({ ...mutant, put: mutant.find })
    expect((await run(`${scene} 1`, place)).problems).toEqual([])
  },
  timeoutMs,
)
