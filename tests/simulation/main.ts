import { useMemoryFolder } from '@tollbase/testing/memory-folder'
import { listPairs } from './payment-pairs.ts'
import { openPlace } from './place.ts'
import { runLog } from './run-log.ts'
import { runMarket } from './run-market.ts'

const scenes = { log: runLog, market: runMarket }

/** A run waits for the database half of its time, which another one may use. */
const atOnceDefault = 4

/** npm run simulate -- --seeds 1000 --from 1 --with news --audited 250 --at-once 4 */
async function main(): Promise<void> {
  const number = (flag: string, otherwise: number) => {
    const at = process.argv.indexOf(flag)
    return at < 0 ? otherwise : Number(process.argv[at + 1])
  }
  const from = number('--from', 1)
  const seeds = number('--seeds', 50)
  const withAt = process.argv.indexOf('--with')
  const subject = withAt < 0 ? undefined : process.argv[withAt + 1]
  useMemoryFolder()
  const place = await openPlace({ auditedPerMille: number('--audited', 1000) })
  let failed = 0
  const happened = new Set<string>()
  const runs = listRuns(from, seeds)
  const work = async () => {
    for (const { scene, seed } of runs) {
      const started = performance.now()
      const {
        problems,
        trace,
        pairs = [],
      } = await scenes[scene](`${scene} ${seed}`, place, subject)
      for (const pair of pairs) happened.add(pair)
      const ms = Math.round(performance.now() - started)
      const isWrong = problems.length > 0
      if (isWrong) failed += 1
      const story = isWrong ? [...trace, ...problems.map((problem) => `  ${problem}`)] : []
      const line = `${scene} ${seed}: ${trace.length} steps in ${ms} ms${isWrong ? ', WRONG' : ''}`
      console.log([line, ...story].join('\n'))
    }
  }
  await Promise.all(Array.from({ length: number('--at-once', atOnceDefault) }, work))
  await place.close()
  console.log(`${seeds} seeds from ${from}: ${failed} runs are wrong`)
  const missed = listPairs({ possible: true }).filter((pair) => !happened.has(pair))
  if (happened.size > 0)
    console.log(
      `pairs of state and event that never happened to a payment: ${missed.join(', ') || 'nothing'}`,
    )
  process.exitCode = failed === 0 ? 0 : 1
}

/** Lists the runs that the command line asks for, one by one: all who take from it share them. */
function* listRuns(from: number, seeds: number) {
  for (let seed = from; seed < from + seeds; seed++)
    for (const scene of ['log', 'market'] as const)
      if (!process.argv.includes('--only') || process.argv.includes(scene)) yield { scene, seed }
}

await main()
