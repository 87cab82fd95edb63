import { expect, it } from 'vitest'
import {
  drawEngineCase,
  type EngineCase,
  printEngineCase,
  simplifyEngineCase,
} from './engine-case.ts'
import { iterateFewer, shrink, simplifyEach } from './shrink.ts'

it('a list that fails by two of its elements is cut down to these two', async () => {
  const found = Array.from({ length: 100 }, (_, at) => at)
  const smallest = await shrink<readonly number[]>(found, {
    simpler: (list) => iterateFewer(list),
    fails: async (list) => list.includes(17) && list.includes(80),
    triesMax: 500,
  })
  expect(smallest).toEqual([17, 80])
})

it('elements are made simpler where they cannot be left out', async () => {
  const smallest = await shrink<readonly number[]>([3, 12, 9], {
    simpler: function* (list) {
      yield* iterateFewer(list)
      yield* simplifyEach(list, (one) => (one === 0 ? [] : [0, one - 1]))
    },
    fails: async (list) => list.reduce((sum, one) => sum + one, 0) >= 10,
    triesMax: 500,
  })
  expect(smallest).toEqual([10])
})

it('shrinking tries no more cases than it may, and gives the simplest case that failed', async () => {
  let tried = 0
  const smallest = await shrink<number>(1_000, {
    simpler: (one) => (one === 0 ? [] : [one - 1]),
    fails: async () => {
      tried += 1
      return true
    },
    triesMax: 25,
  })
  expect([tried, smallest]).toEqual([25, 975])
})

const seeds = Array.from({ length: 200 }, (_, seed) => seed)

it('a long history that fails by one value and one kind of view becomes one of two steps', async () => {
  const seed = seeds.find((each) => failsByExample(printEngineCase(drawEngineCase(each))))
  const found = drawEngineCase(seed ?? 0)
  const smallest = await shrink(found, {
    simpler: simplifyEngineCase,
    fails: async (one) => {
      try {
        return failsByExample(printEngineCase(one))
      } catch {
        return false
      }
    },
    triesMax: 5_000,
  })
  expect(found.steps.length).toBeGreaterThan(100)
  const { unique, steps } = printEngineCase(smallest)
  expect(unique).toEqual([])
  expect(steps.map((step) => step.do).sort()).toEqual(['create', 'write'])
  for (const step of steps) {
    if (step.do === 'write')
      expect(step.records).toEqual([
        { in: expect.any(String), key: expect.any(String), fields: { h: '"y"' } },
      ])
    if (step.do === 'create') {
      expect(step.share).toBe(100)
      const term = 'x\\d+\\.[ghnmtv]'
      const relation = 'app::[abc] x\\d+'
      expect(step.query.ours).toMatch(
        RegExp(
          `^SELECT count\\(DISTINCT ${term}\\) AS c\\d FROM ${relation} LEFT JOIN ${relation} ON ${term} .+ ${term}$`,
        ),
      )
    }
  }
})

function failsByExample({ steps }: EngineCase): boolean {
  const hasValue = steps.some(
    (step) => step.do === 'write' && step.records.some(({ fields }) => fields?.h === '"y"'),
  )
  const hasView = steps.some(
    (step) => step.do === 'create' && /^SELECT count\(DISTINCT.* LEFT JOIN /.test(step.query.ours),
  )
  return hasValue && hasView
}
