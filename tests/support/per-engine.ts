import { afterAll, beforeAll, describe } from 'vitest'
import { listTestEngines } from '../../packages/server/src/database/testing.ts'
import { takeOne } from './by-commit.ts'
import { startTestService, type TestService } from './service.ts'

/**
 * Runs the same tests on one PostgreSQL of those that are found here, another one for the next commit, with a service
 * of its own. Code that speaks SQL of its own is tried on all of them by the tests of database/ and query/.
 */
export function describePerEngine(name: string, tests: (service: () => TestService) => void): void {
  describe.each(takeOne(listTestEngines(), name))(`${name} (%s)`, (engine) => {
    withService(tests, { engine })
  })
}

/** Starts one service for all tests of the block. */
export function withService(
  tests: (service: () => TestService) => void,
  options: Parameters<typeof startTestService>[0] = {},
): void {
  let service: TestService | undefined
  beforeAll(async () => {
    service = await startTestService(options)
  })
  afterAll(() => service?.close())
  tests(() => {
    if (service === undefined) throw new Error('the service did not start')
    return service
  })
}
