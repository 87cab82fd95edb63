import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { audit } from '../../../packages/server/src/operator/audit/audit.ts'
import { startTestService } from '../../support/service.ts'
import { type Failure, type Report, runCampaign } from './campaign.ts'
import { fixtureConfig } from './fixture.ts'
import { captureLog } from './log-lines.ts'

/**
 * `npm run fuzz -- --requests 200000 --seed 1 [--minutes N] [--concurrency N] [--failures N]`: a long campaign
 * against a service of its own. Ends with 1 where an answer was wrong, and writes the request into found/, or where the
 * event loop was held too long.
 */
const { values: flags } = parseArgs({
  options: {
    requests: { type: 'string', default: '20000' },
    seed: { type: 'string', default: '1' },
    minutes: { type: 'string', default: '120' },
    concurrency: { type: 'string', default: '8' },
    failures: { type: 'string', default: '20' },
  },
})

/** No request may hold up all others for longer. */
const heldMsMax = 100

const { log, last } = captureLog()
const service = await startTestService({ devnet: true, log, config: fixtureConfig })
try {
  process.exitCode = await run()
} finally {
  await service.close()
}

async function run(): Promise<number> {
  const start = Date.now()
  const end = start + Number(flags.minutes) * 60_000
  const report = await runCampaign(service, {
    seed: flags.seed,
    requests: Number(flags.requests),
    concurrency: Number(flags.concurrency),
    perFixture: 2000,
    failuresMax: Number(flags.failures),
    isOver: () => Date.now() > end,
    onProgress: (done) => {
      if (done % 1000 === 0) progress(done, start)
    },
  })
  process.stdout.write('\n')
  tell(report)
  const ready = await service.request('GET', '/ready')
  console.log(`ready: ${ready.text}`)
  const audited = await service.whileStopped((config) => audit(config, () => undefined))
  console.log(`audit: ${JSON.stringify({ ...audited, chains: audited.chains.length })}`)
  console.log(`longest turn of the event loop: ${report.heldMs.toFixed(1)} ms`)
  const isQuick = report.heldMs <= heldMsMax
  const isWell = report.failures.length === 0 && ready.status === 200 && audited.equal && isQuick
  if (!isWell) console.log(`last errors of the service:\n${last().join('\n')}`)
  return isWell ? 0 : 1
}

function progress(done: number, start: number): void {
  const rate = Math.round(done / ((Date.now() - start) / 1000))
  process.stdout.write(`\r${done} of ${flags.requests} requests, ${rate} a second `)
}

function tell(report: Report): void {
  console.log(`${report.requests} requests of seed ${flags.seed}`)
  for (const [status, count] of [...report.byStatus].sort(([a], [b]) => a - b))
    console.log(`${status}: ${count}`)
  const kinds = new Map<string, Failure>()
  for (const failure of report.failures)
    kinds.set(`${failure.request.operation}: ${failure.why}`, failure)
  const folder = join(import.meta.dirname, 'found')
  mkdirSync(folder, { recursive: true })
  for (const [kind, failure] of kinds) {
    const name = `${kind
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '-')
      .slice(0, 80)}.json`
    const { request, ...about } = failure
    writeFileSync(
      join(folder, name),
      `${JSON.stringify({ ...about, requests: [request] }, null, 2)}\n`,
    )
    console.log(`FAILED ${kind}\n  found/${name}\n  ${failure.text ?? ''}`)
  }
}
