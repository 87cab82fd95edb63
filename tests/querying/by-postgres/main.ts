import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import fc from 'fast-check'
import { allStatements } from '../../../packages/server/src/query/sql/draw-rows.test-support.ts'
import { openPlace, type Place } from './place.ts'

/**
 * `npm run statements -- --statements 5000 --seed 1`: random statements, sent to a service by HTTP and to PostgreSQL over
 * tables with the same values. A seed gives a hundred of them; one that is answered otherwise is made simpler and
 * printed, and the next seed follows. The exit code is 0 where none was. `--ask` compares one statement.
 */
const { values } = parseArgs({
  options: {
    statements: { type: 'string', default: '1000' },
    seed: { type: 'string' },
    ask: { type: 'string' },
  },
})
const perSeed = 100
const seedsAtOnce = 3

const total = Number(values.statements)
const first = Number(values.seed ?? randomBytes(3).readUIntBE(0, 3))
const place = await openPlace()
try {
  process.exitCode = (values.ask === undefined ? await search(place) : await ask(place, values.ask))
    ? 0
    : 1
} finally {
  await place.close()
}

async function ask({ compare }: Place, text: string): Promise<boolean> {
  const verdicts = [await compare(text, false), await compare(text, true)]
  for (const { outcome, about } of verdicts) console.log(outcome, about)
  return verdicts.every(({ outcome }) => outcome !== 'wrong')
}

async function search({ compare }: Place): Promise<boolean> {
  const counts = { same: 0, refused: 0, skipped: 0, wrong: 0 }
  const reasons = new Map<string, number>()
  const follow = async (seed: number): Promise<void> => {
    let isFailing = false
    const property = fc.asyncProperty(allStatements, fc.boolean(), async (text, isDeclared) => {
      const { outcome, about } = await compare(text, isDeclared)
      // The simpler ones of a wrong one are no cases of their own.
      if (!isFailing) counts[outcome] += 1
      if (outcome === 'refused') note(reasons, about)
      if (outcome === 'wrong') {
        isFailing = true
        throw new Error(about)
      }
    })
    const { failed, counterexample, errorInstance } = await fc.check(property, {
      seed,
      numRuns: perSeed,
    })
    if (failed)
      console.log(`seed ${seed} WRONG ${counterexample?.join(' declared: ')}\n  ${errorInstance}`)
  }
  let [next, done] = [first, 0]
  const last = first + Math.ceil(total / perSeed)
  const follower = async () => {
    while (next < last) {
      await follow(next++)
      done += 1
      if (done % 10 === 0) console.log(new Date().toISOString(), JSON.stringify(counts))
    }
  }
  await Promise.all(Array.from({ length: seedsAtOnce }, follower))
  for (const [reason, count] of [...reasons].sort(([, a], [, b]) => b - a))
    console.log(`refused ${count} times: ${reason}`)
  console.log(`seeds ${first} to ${last - 1}: ${JSON.stringify(counts)}`)
  return counts.wrong === 0
}

function note(reasons: Map<string, number>, about: string): void {
  const reason = about.match(/"error":"(.*?)(?: \(line|",")/)?.[1] ?? about
  reasons.set(reason, (reasons.get(reason) ?? 0) + 1)
}
