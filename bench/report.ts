import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { versionOfPeer } from './peers/packaged.ts'
import type { Comparison } from './rounds.ts'

/** One line of the results. */
export type Row = {
  readonly name: string
  readonly unit: string
  /** The ratio that is aimed at. */
  readonly target?: number
  /** The ratio that is not to be passed, where less is better. */
  readonly most?: number
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
  /** Records of the benchmarks of queries. */
  readonly records: number
  /** Whether to compare with the packaged peers too, and install them if need be. */
  readonly withPeers: boolean
}

export type Benchmark = {
  readonly name: string
  readonly run: (options: RunOptions) => Promise<readonly Row[]>
}

/** A table row: what, ours, peer, ratio (lowest, median, highest), target. */
export function rowText(row: Row): string {
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

/** The file results.md of a whole run. */
export function resultsDocument(rows: readonly Row[], rounds: number): string {
  return `# Benchmark results

Written by \`npm run bench\` on ${new Date().toISOString().slice(0, 10)}; ${machine()}.

${tableHead}
${rows.map(rowText).join('\n')}

## Conditions

- Both sides of a line run in one go, in turns (${rounds} rounds, A B, B A, ...), after a warm-up; a side's number is the median of its rounds, the ratio the median of the rounds' ratios.
- Our service is the built program (\`bin/tollbase.js\`), the peer a process of its own, the load generator a third; all of them and PostgreSQL share the cores.
- One embedded PostgreSQL 18 with the service's default settings (128 MB of shared buffers, fsync and synchronous commit on) serves both sides: reads from the same table, stores into tables of the same definition and indexes (primary key, record key, two fields).
- Documents have about 450 bytes of JSON. Closed loop: every connection waits for its reply. Any reply of another status than the expected one fails the run.
- bare server: node:http, a pool of pg, named prepared statements; no validation, keys, versions or proofs. For reads it sends the very SQL text that our server was seen to send; for stores a batch is one INSERT that the database takes apart, a single record one INSERT, each its own transaction.
- Our service keeps no answers (\`kept_answers_mb\` is 0) but in the lines that say that they are answered from memory.
- stores of single records are counted when the tables show all of them, although our answer comes when the block is durable.
- queries: the records are stored by the public interface and indexed after that, then VACUUM ANALYZE; all sides stay up, our service with the connections that it has for queries (a pool of 12, and 4 that short reads share), the others with 10 each (the bare server of the first lines: the best of some). The bare server is given the statement that our service was seen to send, or, where the line says so, SQL by hand over the same tables and indexes, with the same meaning of null and of types; answers are compared before they are measured. Processor time is that of the server's process and of all of PostgreSQL's, user and system, per request.
- PostGraphile ${versionOfPeer('postgraphile')} (Amber preset, node:http, production, prepared statements, plans kept) and Directus ${versionOfPeer('directus')} (production; no log, studio, limits or extensions; read by anyone; no cache of answers) read the items from a table of columns with an index on the field; both run on Node ${versionOfPeer('node22')}, which they need, with the same options of node as our service. Neither counts the matches, as our service does.
- paid reads: Express ${versionOf('express')}, @x402/express ${versionOf('@x402/express')} with the facilitator of @x402/evm ${versionOf('@x402/evm')} in its process, viem ${versionOf('viem')}'s nonce manager, pg ${versionOf('pg')}, on the same devnet, table and statement. Our service's process makes the chain's blocks for both sides.
`
}

function machine(): string {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 2 ** 30)
  return `${cpus().length} cores (${cpu?.model.trim()}), ${memory} GB, ${kernel()}, Node ${process.version}, fastify ${versionOf('fastify')}, pg ${versionOf('pg')}`
}

function kernel(): string {
  return execFileSync('uname', ['-sr'], { encoding: 'utf8' }).trim()
}

function versionOf(name: string): string {
  const file = new URL(`../node_modules/${name}/package.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8')).version
}

function amount(value: number): string {
  return value < 10 ? value.toPrecision(3) : Math.round(value).toLocaleString('en-US')
}
