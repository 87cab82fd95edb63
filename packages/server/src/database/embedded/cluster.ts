import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmdirSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DatabaseSetupError } from '../errors.ts'
import type { PostgresBinaries } from './binaries.ts'
import { readText } from './process-info.ts'
import { type Command, giveTo, runAs, type ServerUser } from './server-user.ts'

export type ClusterOptions = {
  /** The data folder of the server itself. */
  readonly folder: string
  readonly binaries: PostgresBinaries
  readonly user: ServerUser
}

/** The account inside the database that owns everything; the socket's folder keeps others out. */
export const clusterUser = 'tollbase'

const initTimeoutMs = 120_000
/** Majors from here on have collations of their own, the same on every system. */
const builtinLocaleMajorMin = 17

/** Follows the name of the cluster's folder in that of one which is not complete. */
const draftSuffix = '.init'

/** Makes sure that the folder holds a cluster which these binaries can open. */
export async function prepareCluster({ folder, binaries, user }: ClusterOptions): Promise<void> {
  const version = readText(join(folder, 'PG_VERSION'))?.trim()
  if (version === undefined) {
    removeIfEmpty(folder)
    await createCluster({ folder, binaries, user })
  } else if (Number(version) !== binaries.major) {
    throw new DatabaseSetupError(
      `the data in ${folder} was made by PostgreSQL ${version}, but the programs in ${binaries.folder} are ` +
        `PostgreSQL ${binaries.major}, which cannot open it. Name a folder with the programs of PostgreSQL ${version} ` +
        `(for example /usr/lib/postgresql/${version}/bin), or convert the data with pg_upgrade`,
    )
  }
  giveTo(user, folder)
}

/**
 * Creates the cluster in a folder beside, which gets the name once it is complete: a killed initdb leaves no half
 * cluster. The folder is a new one each time: the initdb of a process that was killed may still write into its own.
 */
async function createCluster({ folder, binaries, user }: ClusterOptions): Promise<void> {
  removeDrafts(folder)
  const draft = mkdtempSync(`${folder}${draftSuffix}-`)
  giveTo(user, draft)
  const { ok, output } = await runAs(user, initCommand(binaries, draft), initTimeoutMs)
  if (!ok)
    throw new DatabaseSetupError(
      `the database could not be created in ${draft}: ${findCause(output)}`,
    )
  renameSync(draft, folder)
  syncFolder(dirname(folder))
}

/** Removes what earlier ones left, of which one may still be written to. */
function removeDrafts(folder: string): void {
  const start = `${basename(folder)}${draftSuffix}`
  for (const name of readdirSync(dirname(folder)).filter((one) => one.startsWith(start)))
    rmSync(join(dirname(folder), name), { recursive: true, force: true, maxRetries: 10 })
}

/** Finds the lines that say what is wrong, among those of what was done; one line of all. */
function findCause(output: string): string {
  if (output.includes('caught signal')) return 'initdb was told to end; start again'
  const lines = output.split('\n').filter((line) => line.trim() !== '')
  const causes = lines.filter((line) => /\b(error|FATAL|PANIC|ERROR|DETAIL|hint):/.test(line))
  return (causes.length > 0 ? causes : lines.slice(-1)).join('; ')
}

function initCommand(binaries: PostgresBinaries, folder: string): Command {
  const locale =
    binaries.major >= builtinLocaleMajorMin
      ? ['--locale=C', '--locale-provider=builtin', '--builtin-locale=C.UTF-8']
      : [process.platform === 'linux' ? '--locale=C.UTF-8' : '--locale=C']
  const program = join(binaries.folder, 'initdb')
  return [program, '-D', folder, '-U', clusterUser, '-A', 'trust', '--encoding=UTF8', ...locale]
}

function removeIfEmpty(folder: string): void {
  if (!existsSync(folder)) return
  if (readdirSync(folder).length > 0) {
    throw new DatabaseSetupError(
      `${folder} is not empty and holds no PostgreSQL data; move it away`,
    )
  }
  rmdirSync(folder)
}

/** Makes the rename itself durable. */
function syncFolder(folder: string): void {
  const handle = openSync(folder, 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
