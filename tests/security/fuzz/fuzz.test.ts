import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { audit } from '../../../packages/server/src/operator/audit/audit.ts'
import { startTestService, type TestService } from '../../support/service.ts'
import { replay, runCampaign } from './campaign.ts'
import { fixtureConfig } from './fixture.ts'
import { captureLog } from './log-lines.ts'
import { type FuzzRequest, makeRequest } from './requests.ts'

const found = join(import.meta.dirname, 'found')
const cases = readdirSync(found).filter((name) => name.endsWith('.json'))
/** The requests are the same in every run; other seeds are tried by hand: `npm run fuzz -- --seed 2`. */
const seed = '1'

const { log, last } = captureLog()
let service: TestService
beforeAll(async () => {
  service = await startTestService({ devnet: true, log, config: fixtureConfig })
})
afterAll(() => service?.close())

describe('the contract under hostile requests', () => {
  test('a seed gives the same requests again, and another seed others', () => {
    const some = (of: string) => Array.from({ length: 50 }, (_, at) => makeRequest(of, at))
    expect(some(seed)).toEqual(some(seed))
    expect(some(seed)).not.toEqual(some('2'))
  })

  test.each(cases)('a case that was found once stays right: %s', async (name) => {
    const requests: readonly FuzzRequest[] = JSON.parse(
      readFileSync(join(found, name), 'utf8'),
    ).requests
    expect(await replay(service, requests), last().join('\n')).toEqual([])
    expect((await service.request('GET', '/ready')).status).toBe(200)
  })

  test(`every answer to the requests of seed ${seed} is one of the contract, and the log stays whole`, async () => {
    const report = await runCampaign(service, {
      seed,
      requests: 3000,
      concurrency: 4,
      perFixture: 1500,
      failuresMax: 3,
    })
    expect(report.failures, last().join('\n')).toEqual([])
    expect((await service.request('GET', '/ready')).body).toMatchObject({ ready: true })
    const audited = await service.whileStopped((config) => audit(config, () => undefined))
    expect(audited).toMatchObject({ equal: true })
  }, 300_000)
})
