import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { coldStart } from './cold-start.ts'
import { paidReads } from './paid-reads.ts'
import { reads } from './reads.ts'
import { type Benchmark, type Row, resultsDocument, rowText, tableHead } from './report.ts'
import { signatures } from './signatures.ts'
import { stores } from './stores.ts'

// npm run bench [-- name ...] [--rounds 5] [--only text] [--profile folder]
// A run of all of them with nothing left out writes results.md.

const benchmarks: readonly Benchmark[] = [reads, stores, paidReads, signatures, coldStart]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    profile: { type: 'string' },
  },
})
const { only, profile } = values
const unknown = positionals.find((name) => benchmarks.every((one) => one.name !== name))
if (unknown !== undefined) {
  const names = benchmarks.map(({ name }) => name).join(', ')
  console.error(`no benchmark ${unknown}; there are ${names}`)
  process.exit(2)
}

const options = {
  rounds: Number(values.rounds),
  only,
  nodeOptions: profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`],
}
const isWhole = positionals.length === 0 && only === '' && profile === undefined
const rows: Row[] = []
console.log(tableHead)
for (const benchmark of benchmarks) {
  if (positionals.length > 0 && !positionals.includes(benchmark.name)) continue
  for (const row of await benchmark.run(options)) {
    console.log(rowText(row))
    rows.push(row)
  }
}
if (isWhole) {
  writeFileSync(new URL('results.md', import.meta.url), resultsDocument(rows, options.rounds))
}
