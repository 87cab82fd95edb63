import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import type { Comparison } from './rounds.ts'

/** One line of the results. */
export type Row = {
  readonly name: string
  readonly unit: string
  /** The ratio that is aimed at. */
  readonly target?: number
  readonly comparison?: Comparison
  /** Where there is nothing to compare with. */
  readonly value?: string
  /** Conditions of this line alone. */
  readonly note: string
}

export type RunOptions = {
  readonly rounds: number
  /** Options of node for our service, as for a profile. */
  readonly nodeOptions: readonly string[]
  /** Only the lines whose name holds this text. */
  readonly only: string
}

export type Benchmark = {
  readonly name: string
  readonly run: (options: RunOptions) => Promise<readonly Row[]>
}

/** A table row: what, ours, peer, ratio (lowest, median, highest), target. */
export function rowText(row: Row): string {
  const { comparison, target } = row
  if (comparison === undefined) return `| ${row.name} | ${row.value ?? ''} | | | | ${row.note} |`
  const { ratio, ours, peer } = comparison
  const goal =
    target === undefined ? '' : `>= ${target}x: ${ratio.median >= target ? 'met' : 'missed'}`
  return `| ${row.name} | ${amount(ours)} ${row.unit} | ${amount(peer)} ${row.unit} | ${ratio.min.toFixed(2)} / **${ratio.median.toFixed(2)}** / ${ratio.max.toFixed(2)} | ${goal} | ${row.note} |`
}

export const tableHead = `| what | ours | peer | ours / peer: min / **median** / max | target | conditions |
| --- | --- | --- | --- | --- | --- |`

/** The machine and the versions, read from where they are true. */
export function conditions(): readonly string[] {
  const [cpu] = cpus()
  return [
    `${cpus().length} cores (${cpu?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GB, ${kernel()}, Node ${process.version}`,
    ...['pg', 'fastify', 'express', '@x402/express', '@x402/evm', 'viem'].map(
      (name) => `${name} ${versionOf(name)}`,
    ),
  ]
}

function kernel(): string {
  return execFileSync('uname', ['-sr'], { encoding: 'utf8' }).trim()
}

function versionOf(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')).version
}

function amount(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
