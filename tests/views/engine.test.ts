import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  createTestDatabase,
  type TestDatabase,
} from '../../packages/server/src/database/testing.ts'
import { chooseSeed } from '../support/by-commit.ts'
import { type EngineCase, followEngine, runEngineCase } from './engine-case.ts'
import { readKeptHistories } from './kept-histories.ts'

/**
 * Others for each commit; a case is one view after one step. More of them by hand: `npm run views -- --only engine
 * --minutes 20 --seed 7`.
 */
const [first, histories] = [chooseSeed(), 12]

/** The tries are shared by all cases, so that an engine that is wrong everywhere is reported in time. */
const tries = { left: 200 }

let test: TestDatabase

beforeAll(async () => {
  test = await createTestDatabase()
})
afterAll(async () => test?.drop())

it.each(readKeptHistories<EngineCase>('engine'))(
  'a history in which a view was wrong once is right: $name',
  async ({ history }) => {
    await expect(runEngineCase(test, history)).resolves.toBeUndefined()
  },
)

it.each(Array.from({ length: histories }, (_, at) => first + at))(
  'views kept by changes equal their definitions at every position: history %i',
  async (seed) => {
    await followEngine(test, seed, { tries })
  },
  300_000,
)
