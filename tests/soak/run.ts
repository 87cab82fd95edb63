import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { openSmallDisk } from '../faults/small-disk.ts'
import { runSoak } from './soak.ts'

/** Size of the small disk: room for the database's log, and for the records of some minutes. */
const mebibytes = 640

/**
 * `npm run soak -- --minutes 20 --seed 7`: exit code 0 where nothing was violated. With `--full-disk` the data is on a
 * small disk that is full at times (mounting it needs root), and nothing is killed.
 */
const { values } = parseArgs({
  options: {
    minutes: { type: 'string' },
    seed: { type: 'string' },
    'full-disk': { type: 'boolean' },
  },
})
const minutes = Number(values.minutes ?? 1)
const seed = Number(values.seed ?? randomBytes(4).readUInt32BE())
if (!(minutes > 0) || !Number.isSafeInteger(seed) || seed < 0 || seed >= 2 ** 32) {
  console.error(
    'usage: npm run soak -- [--minutes <more than 0>] [--seed <0 to 4294967295>] [--full-disk]',
  )
  process.exit(2)
}

const ending = new AbortController()
process.once('SIGINT', () => ending.abort())
process.once('SIGTERM', () => ending.abort())
const startedAt = Date.now()
const line = (text: string) =>
  console.log(`${String(Math.round((Date.now() - startedAt) / 1000)).padStart(5)} s  ${text}`)
console.log(`soak of ${minutes} minutes, seed ${seed}`)
const disk = values['full-disk'] === true ? openSmallDisk({ kind: 'memory', mebibytes }) : undefined
const { violations, counts, memory } = await runSoak({
  ...{ minutes, seed, line, signal: ending.signal },
  ...(disk && { disk }),
}).finally(() => disk?.remove())
for (const [name, count] of Object.entries(counts)) console.log(`${name.padEnd(14)} ${count}`)
console.log(memory)
console.log(`${violations.length} violations (seed ${seed})`)
for (const violation of violations.slice(0, 50)) console.log(`  ${violation}`)
process.exitCode = violations.length === 0 ? 0 : 1
