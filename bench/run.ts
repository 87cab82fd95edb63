import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { besideAttacks } from './attacks.ts'
import { blobs } from './blobs.ts'
import { coldStart } from './cold-start.ts'
import { columnFilling } from './column-filling.ts'
import { encryptedStores } from './encrypted-stores.ts'
import { engine } from './engine.ts'
import { manyBuyers } from './many-buyers.ts'
import { paidReads } from './paid-reads.ts'
import { proofs } from './proofs.ts'
import { publishing } from './publishing.ts'
import { queries } from './queries.ts'
import { reads } from './reads.ts'
import { rebuilds } from './rebuilds.ts'
import { type Benchmark, formatRow, formatWholeRun, type Row, tableHead } from './report.ts'
import { signatures } from './signatures.ts'
import { smallPayments } from './small-payments.ts'
import { stores } from './stores.ts'
import { views } from './views.ts'

// npm run bench [-- name ...] [--rounds 5] [--only text] [--profile folder] [--records 1000000] [--peers]
// --peers installs PostGraphile and Directus below peers/, which takes minutes the first time.
// A run of all of them with nothing left out (so with --peers) writes whole-run.md.

const benchmarks: readonly Benchmark[] = [
  reads,
  queries,
  engine,
  views,
  stores,
  paidReads,
  smallPayments,
  manyBuyers,
  signatures,
  encryptedStores,
  columnFilling,
  blobs,
  proofs,
  rebuilds,
  coldStart,
  publishing,
  besideAttacks,
]

const recordsFull = 1_000_000

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    profile: { type: 'string' },
    records: { type: 'string', default: String(recordsFull) },
    peers: { type: 'boolean', default: false },
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
  records: Number(values.records),
  withPeers: values.peers,
  nodeOptions: profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${profile}`],
}
const isNarrow = positionals.length > 0 || only !== '' || profile !== undefined
const isWhole = !isNarrow && values.peers && options.records >= recordsFull
const rows: Row[] = []
console.log(tableHead)
for (const benchmark of benchmarks) {
  if (positionals.length > 0 && !positionals.includes(benchmark.name)) continue
  for (const row of await benchmark.run(options)) {
    console.log(formatRow(row))
    rows.push(row)
  }
}
if (isWhole) {
  writeFileSync(new URL('whole-run.md', import.meta.url), formatWholeRun(rows, options.rounds))
}
