import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { createTestDatabase } from '../../packages/server/src/database/testing.ts'
import { audit } from '../../packages/server/src/operator/audit/audit.ts'
import { startTestService } from '../support/service.ts'
import { type EngineCase, followEngine, runEngineCase } from './engine-case.ts'
import { type Runner, readHistory } from './kept-histories.ts'
import { followService } from './service-case.ts'
import { runServiceCase, type ServiceCase } from './service-run.ts'

/**
 * `npm run views -- --minutes 20 --seed 7`: histories of consecutive seeds, each through the engine of views and then
 * through a whole service; those that are wrong are made simpler and kept. `--replay` follows a kept one. The exit code
 * is 0 where nothing was wrong.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    only: { type: 'string' },
    replay: { type: 'string' },
  },
})
const minutes = Number(values.minutes ?? 1)
const first = Number(values.seed ?? randomBytes(4).readUInt32BE())
const only = values.only ?? 'both'
const isSeed = Number.isSafeInteger(first) && first >= 0 && first < 2 ** 32
if (!(minutes > 0) || !isSeed || !['engine', 'service', 'both'].includes(only)) {
  console.error(
    'usage: npm run views -- [--minutes <more than 0>] [--seed <0 to 4294967295>] [--only engine|service]\n' +
      '       npm run views -- --replay <file>',
  )
  process.exit(2)
}
process.exit((values.replay === undefined ? await search() : await replay(values.replay)) ? 0 : 1)

async function replay(file: string): Promise<boolean> {
  const { runner } = readHistory<{ readonly runner: Runner }>(file)
  if (runner === 'service') {
    const service = await startTestService()
    const isRight = await reportRun(file, runServiceCase(service, readHistory<ServiceCase>(file)))
    await service.close()
    return isRight
  }
  const test = await createTestDatabase()
  const isRight = await reportRun(file, runEngineCase(test, readHistory<EngineCase>(file)))
  await test.drop()
  return isRight
}

/** Runs histories; ten of them share a service, with an audit after the last. */
async function search(): Promise<boolean> {
  const historiesOfService = 10
  const bounds = () => ({ tries: { left: 3_000 }, log: (line: string) => console.log(line) })
  const until = Date.now() + minutes * 60_000
  let [failed, seed] = [0, first]
  while (Date.now() < until) {
    const test = await createTestDatabase()
    const service = await startTestService()
    for (let made = 0; made < historiesOfService && Date.now() < until; made += 1, seed += 1) {
      if (
        only !== 'service' &&
        !(await reportRun(`engine ${seed}`, followEngine(test, seed, bounds())))
      )
        failed += 1
      if (
        only !== 'engine' &&
        !(await reportRun(`service ${seed}`, followService(service, seed, bounds())))
      )
        failed += 1
    }
    const outcome = await service.whileStopped((config) => audit(config, () => undefined))
    if (!outcome.equal) {
      failed += 1
      console.log('the audit, WRONG', outcome)
    }
    await service.close()
    await test.drop()
  }
  console.log(`${seed - first} seeds from ${first}: ${failed} are wrong`)
  return failed === 0
}

async function reportRun(what: string, work: Promise<void>): Promise<boolean> {
  const startedAt = performance.now()
  const wrong = await work.then(
    () => undefined,
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  )
  const ms = Math.round(performance.now() - startedAt)
  console.log(`${what}: ${ms} ms${wrong === undefined ? '' : `, WRONG\n${wrong}`}`)
  return wrong === undefined
}
