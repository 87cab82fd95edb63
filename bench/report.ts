import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { readPeerVersion } from './peers/packaged.ts'
import type { Comparison } from './rounds.ts'

/** One line of the results. */
export type Row = {
  readonly name: string
  readonly unit: string
  /** The target ratio. */
  readonly target?: number
  /** The highest ratio allowed, where less is better. */
  readonly most?: number
  readonly comparison?: Comparison
  /** The measured value, where there is nothing to compare with. */
  readonly value?: string
  /** The conditions of this line alone. */
  readonly note: string
}

export type RunOptions = {
  readonly rounds: number
  /** The options of node for our service, as for a profile. */
  readonly nodeOptions: readonly string[]
  /** Runs only the lines whose name contains this text. */
  readonly only: string
  /** The number of records in the benchmarks of queries. */
  readonly records: number
  /** Compares with the packaged peers too, and installs them if need be. */
  readonly withPeers: boolean
}

export type Benchmark = {
  readonly name: string
  readonly run: (options: RunOptions) => Promise<readonly Row[]>
}

/** Formats a table row: name, ours, peer, ratio (lowest, median, highest), target. */
export function formatRow(row: Row): string {
  const { comparison } = row
  if (comparison === undefined) return `| ${row.name} | ${row.value ?? ''} | | | | ${row.note} |`
  const { ratio, ours, peer } = comparison
  return `| ${row.name} | ${amount(ours)} ${row.unit} | ${amount(peer)} ${row.unit} | ${ratio.min.toFixed(2)} / **${ratio.median.toFixed(2)}** / ${ratio.max.toFixed(2)} | ${goalText(row, ratio.median)} | ${row.note} |`
}

function goalText({ target, most }: Row, median: number): string {
  if (target !== undefined) return `>= ${target}x: ${median >= target ? 'met' : 'missed'}`
  return most === undefined ? '' : `<= ${most}x: ${median <= most ? 'met' : 'missed'}`
}

export const tableHead = `| what | ours | peer | ours / peer: min / **median** / max | target | conditions |
| --- | --- | --- | --- | --- | --- |`

/** Formats the file whole-run.md. */
export function formatWholeRun(rows: readonly Row[], rounds: number): string {
  return `# A whole run of the benchmarks

Written by \`npm run bench\` on ${new Date().toISOString().slice(0, 10)}, ${rounds} rounds; ${machine()}; ${listPeers()}. [Conditions](results.md#conditions).

${tableHead}
${rows.map(formatRow).join('\n')}
`
}

function listPeers(): string {
  const packaged = (['postgraphile', 'directus', 'node22'] as const).map(
    (name) => `${name} ${readPeerVersion(name)}`,
  )
  const modules = ['express', '@x402/express', '@x402/evm', 'viem'].map(
    (name) => `${name} ${readVersion(name)}`,
  )
  return [...packaged, ...modules].join(', ')
}

function machine(): string {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  return `${cpus().length} cores (${cpu?.model.trim()}), ${memory} GB, ${kernel()}, Node ${process.version}, fastify ${readVersion('fastify')}, pg ${readVersion('pg')}`
}

function kernel(): string {
  return execFileSync('uname', ['-sr'], { encoding: 'utf8' }).trim()
}

function readVersion(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')).version
}

function amount(value: number): string {
  return value < 10 ? value.toPrecision(3) : Math.round(value).toLocaleString('en-US')
}
