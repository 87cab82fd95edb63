import { test } from 'vitest'
import { isTaken } from './by-commit.ts'

type Test = ((title: string, work: () => Promise<void>) => void) & Pick<typeof test, 'each'>

/**
 * Makes a `test` for a file of a dear subject, whose tests stand by themselves: each commit runs one of several parts of
 * them, and skips the others. Those of `each` always run.
 * @example const test = makeSharedTest(3)
 */
export function makeSharedTest(parts: number): Test {
  let count = 0
  const take = (title: string, work: () => Promise<void>) => {
    test.skipIf(!isTaken(count, parts))(title, work)
    count += 1
  }
  return Object.assign(take, { each: test.each.bind(test) as typeof test.each })
}
