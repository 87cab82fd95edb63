import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { SetupError } from '@tollbase/server/base/setup-error'
import type { Config, Flags } from '@tollbase/server/config/config'
import type { Command } from 'commander'
import { printLine, printProblem } from './print-line.ts'
import { makeProgressLine } from './progress.ts'

export type MaintenanceFlags = Flags & { readonly json?: boolean }

/** The result of an audit or a rebuild. */
type Report = {
  readonly equal: boolean
  readonly difference?: Readonly<Record<string, unknown>>
  readonly unfinished?: readonly Readonly<Record<string, unknown>>[]
  readonly chains: readonly {
    readonly chain: string
    readonly blocks: number
    readonly entries: number
  }[]
}

export function addMaintenanceOptions(command: Command): Command {
  return command
    .option('--data-dir <folder>', 'where data is kept (TOLLBASE_DATA_DIR, ./tollbase-data)')
    .option('--database-url <url>', 'a PostgreSQL server instead of our own (DATABASE_URL)')
    .option('--config <file>', 'configuration file (tollbase.config.json)')
    .option('--json', 'print the result as JSON')
}

/** Runs a maintenance command and prints what it found. Exit code 0 equal, 1 different, 2 could not run. */
export async function runMaintenance(flags: MaintenanceFlags, run: Work<Report>): Promise<number> {
  return runOffline(flags, {
    run: (config, progress) => {
      refuseEmptyFolder(config)
      return run(config, progress)
    },
    print: printReport,
  })
}

type Work<Result> = (
  config: Config,
  progress: (text: string, part: number) => void,
) => Promise<Result>

/** Runs a command that needs no running service, with a progress bar, and returns its exit code. */
export async function runOffline<Result extends object>(
  flags: MaintenanceFlags,
  { run, print }: { readonly run: Work<Result>; readonly print: (result: Result) => void },
): Promise<number> {
  const line = makeProgressLine(flags.json !== true)
  try {
    const { readConfig } = await import('@tollbase/server/config/config')
    const result = await run(readConfig(flags, process.env), line.update)
    line.end()
    if (flags.json === true) console.log(JSON.stringify(result))
    else print(result)
    return 'equal' in result && result.equal === false ? 1 : 0
  } catch (error) {
    line.end()
    const message = error instanceof Error ? error.message : String(error)
    if (flags.json === true) console.log(JSON.stringify({ error: message }))
    else printProblem(`tollbase: ${message}`)
    return 2
  }
}

/** A mistyped folder must not become a new, empty and perfectly equal service. */
export function refuseEmptyFolder({ dataDir, databaseUrl }: Config): void {
  if (databaseUrl === undefined && !existsSync(join(dataDir, 'postgres')))
    throw new SetupError(`--data-dir ${dataDir}: there is no service's data in this folder`)
}

export function printReport(report: Report): void {
  for (const { chain, blocks, entries } of report.chains) {
    console.log(`${chain}: ${blocks} blocks, ${entries} entries`)
  }
  if (report.equal) {
    console.log('equal')
    return
  }
  if (report.difference !== undefined) {
    console.log('DIFFERENT; the first difference:')
    printFields(report.difference)
    return
  }
  console.log('NOT WHOLE; start the service and let it fill these views, or run rebuild:')
  for (const view of report.unfinished ?? []) printFields(view)
}

/** Blobs without files that a report on the console names. */
const lostShownMax = 20

type Lost = { readonly count: number; readonly first: readonly string[] }

/** Prints the blobs that a restore or an import went on without. */
export function printLost({ count, first }: Lost): void {
  console.log(`${count} blobs have rows and no files; uploading the same bytes repairs each:`)
  for (const one of first.slice(0, lostShownMax)) printLine(`  ${one}`)
  if (count > lostShownMax) console.log(`  and ${count - lostShownMax} more`)
}

type Copied = { readonly blobs: { readonly lost?: number } }

/** Notes that a copy is not equal to what rows name, where files of blobs were missing: its command ends with code 1. */
export async function noteLost<T extends Copied>(
  copying: Promise<T>,
): Promise<T & { equal: boolean }> {
  const copied = await copying
  return { ...copied, equal: copied.blobs.lost === undefined }
}

export function printSourceLosses({ lost }: Copied['blobs']): void {
  if (lost === undefined) return
  console.log(
    `NOT WHOLE: the files of ${lost} blobs that rows name are missing here or damaged; audit names the first`,
  )
}

function printFields(fields: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(fields)) printLine(`  ${name}: ${String(value)}`)
}
