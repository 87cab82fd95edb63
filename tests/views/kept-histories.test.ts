import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { followHistory, readKeptHistories } from './kept-histories.ts'
import { Mismatch } from './mismatch.ts'
import { iterateFewer } from './shrink.ts'

let folder: string

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'tollbase-kept-'))
})
afterAll(() => rmSync(folder, { recursive: true }))

type History = { readonly steps: readonly number[] }

/** The history fails by 3 and 5 together, and in another way without a step. */
async function run({ steps }: History): Promise<void> {
  if (steps.length === 0) throw new Mismatch('empty', 'no step')
  if (steps.includes(3) && steps.includes(5)) throw new Mismatch('sum', `of ${steps.length} steps`)
}

const history = (seed: number, steps: readonly number[]) => ({
  runner: 'engine' as const,
  seed,
  drawn: { steps },
  simpler: function* (one: History) {
    for (const some of iterateFewer(one.steps)) yield { steps: some }
  },
  print: (one: History) => one,
  run,
})

it('a history that fails is kept as the simplest one that fails in the same way, and is read as it was kept', async () => {
  const tries = { left: 100 }
  const failing = followHistory(history(7, [1, 2, 3, 4, 5, 6]), { tries, folder })
  await expect(failing).rejects.toThrow('"wrong": ["sum: of 2 steps"]')
  expect(readKeptHistories<History>('engine', folder)).toEqual([
    {
      name: 'seed-7.json',
      history: {
        runner: 'engine',
        found: 'seed 7',
        wrong: ['sum: of 2 steps'],
        steps: [3, 5],
      },
    },
  ])
  expect(tries.left).toBeGreaterThan(0)
})

it('a history that does not fail is not kept', async () => {
  await followHistory(history(8, [1, 2]), { tries: { left: 100 }, folder })
  expect(existsSync(join(folder, 'engine', 'seed-8.json'))).toBe(false)
})

it('a history is kept as it is when no tries are left', async () => {
  const failing = followHistory(history(9, [3, 4, 5]), { tries: { left: 0 }, folder })
  await expect(failing).rejects.toThrow('of 3 steps')
})
