import { writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { coldStart } from './cold-start.ts'
import { paidReads } from './paid-reads.ts'
import { reads } from './reads.ts'
import { type Benchmark, conditions, type Row, rowText, tableHead } from './report.ts'
import { signatures } from './signatures.ts'
import { stores } from './stores.ts'

const benchmarks: readonly Benchmark[] = [reads, stores, paidReads, signatures, coldStart]

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '5' },
    only: { type: 'string', default: '' },
    profile: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
})
const unknown = positionals.find((name) => benchmarks.every((one) => one.name !== name))
if (unknown !== undefined) {
  console.error(
    `no benchmark ${unknown}; there are ${benchmarks.map(({ name }) => name).join(', ')}`,
  )
  process.exit(2)
}

const chosen = benchmarks.filter(
  ({ name }) => positionals.length === 0 || positionals.includes(name),
)
const options = {
  rounds: Number(values.rounds),
  only: values.only,
  nodeOptions:
    values.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values.profile}`],
}
const rows: Row[] = []
console.log(tableHead)
for (const benchmark of chosen) {
  for (const row of await benchmark.run(options)) {
    console.log(rowText(row))
    rows.push(row)
  }
}
if (values.write) writeFileSync(new URL('results.md', import.meta.url), document(rows))

function document(all: readonly Row[]): string {
  return ''
}
