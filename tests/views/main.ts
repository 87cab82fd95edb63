import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { audit } from '../../packages/server/src/app-audit.ts'
import { startTestService } from '../support/service.ts'
import { followHistory, historySize } from './service-history.ts'

/** `npm run views -- --minutes 20 --seed 7`: histories of consecutive seeds; exit code 0 where nothing was wrong. */
const { values } = parseArgs({
  options: { minutes: { type: 'string' }, seed: { type: 'string' } },
})
const minutes = Number(values.minutes ?? 1)
const first = Number(values.seed ?? randomBytes(4).readUInt32BE())
if (!(minutes > 0) || !Number.isSafeInteger(first) || first < 0 || first >= 2 ** 32) {
  console.error('usage: npm run views -- [--minutes <more than 0>] [--seed <0 to 4294967295>]')
  process.exit(2)
}

/** So many share a service, whose audit comes after the last. */
const historiesOfService = 10

const until = Date.now() + minutes * 60_000
let failed = 0
let seed = first
while (Date.now() < until) {
  const service = await startTestService()
  for (let made = 0; made < historiesOfService && Date.now() < until; made += 1, seed += 1) {
    const startedAt = performance.now()
    const wrong = await followHistory(service, seed, historySize).catch((error: unknown) => error)
    const ms = Math.round(performance.now() - startedAt)
    console.log(`seed ${seed}: ${ms} ms${wrong === undefined ? '' : ', WRONG'}`)
    if (wrong === undefined) continue
    failed += 1
    console.log(wrong instanceof Error ? wrong.message : wrong)
  }
  const outcome = await service.whileStopped((config) => audit(config, () => undefined))
  if (!outcome.equal) {
    failed += 1
    console.log('the audit, WRONG', outcome)
  }
  await service.close()
}
console.log(`${seed - first} histories from ${first}: ${failed} are wrong`)
process.exit(failed === 0 ? 0 : 1)
