import { useMemoryFolder } from '@tollbase/testing/memory-folder'
import { listPairs } from './payment-pairs.ts'
import { openPlace } from './place.ts'
import { readOptions, type Scene, usage } from './read-options.ts'
import { runLog } from './run-log.ts'
import { runMarket } from './run-market.ts'

const scenes = { log: runLog, market: runMarket }

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  if (options === undefined || options === 'help') {
    console[options === undefined ? 'error' : 'log'](usage)
    process.exitCode = options === undefined ? 2 : 0
    return
  }
  const { from, seeds, audited, atOnce, chosen, subject } = options
  useMemoryFolder()
  const place = await openPlace({ auditedPerMille: audited })
  let failed = 0
  const happened = new Set<string>()
  const runs = listRuns({ from, seeds, chosen })
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
  await Promise.all(Array.from({ length: atOnce }, work))
  await place.close()
  console.log(`${seeds} seeds from ${from}: ${failed} runs are wrong`)
  const missed = listPairs({ possible: true }).filter((pair) => !happened.has(pair))
  if (happened.size > 0)
    console.log(
      `pairs of state and event that never happened to a payment: ${missed.join(', ') || 'nothing'}`,
    )
  process.exitCode = failed === 0 ? 0 : 1
}

/** Lists the runs one by one: all who take from it share them. */
function* listRuns(by: {
  readonly from: number
  readonly seeds: number
  readonly chosen: readonly Scene[]
}) {
  for (let seed = by.from; seed < by.from + by.seeds; seed++)
    for (const scene of by.chosen) yield { scene, seed }
}

await main()
