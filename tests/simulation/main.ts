import { useMemoryFolder } from '@tollbase/testing/memory-folder'
import { listPairs } from './payment-pairs.ts'
import { openPlace } from './place.ts'
import { runLog } from './run-log.ts'
import { runMarket } from './run-market.ts'

/** npm run simulate -- --seeds 1000 --from 1 --with news --audited 250 */
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
  const scenes = { log: runLog, market: runMarket }
  for (let seed = from; seed < from + seeds; seed++) {
    for (const [scene, run] of Object.entries(scenes)) {
      if (process.argv.includes('--only') && !process.argv.includes(scene)) continue
      const started = performance.now()
      const { problems, trace, pairs = [] } = await run(`${scene} ${seed}`, place, subject)
      for (const pair of pairs) happened.add(pair)
      const ms = Math.round(performance.now() - started)
      const verdict = problems.length > 0 ? ', WRONG' : ''
      console.log(`${scene} ${seed}: ${trace.length} steps in ${ms} ms${verdict}`)
      if (problems.length === 0) continue
      failed += 1
      console.log(trace.join('\n'))
      for (const problem of problems) console.log(`  ${problem}`)
    }
  }
  await place.close()
  console.log(`${seeds} seeds from ${from}: ${failed} runs are wrong`)
  const missed = listPairs({ possible: true }).filter((pair) => !happened.has(pair))
  if (happened.size > 0)
    console.log(
      `pairs of state and event that never happened to a payment: ${missed.join(', ') || 'nothing'}`,
    )
  process.exitCode = failed === 0 ? 0 : 1
}

await main()
