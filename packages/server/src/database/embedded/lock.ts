import { constants, copyFileSync, linkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSetupError } from '../errors.ts'
import { findStartTime, isAlive, readText } from './process-info.ts'

/** Bound of the loop; more contenders for one stale lock do not happen. */
const attemptsMax = 20

let counter = 0

/**
 * Makes this process the only user of a folder, by the file `lock` with its process id and start time. A lock whose
 * process is gone is taken over. Returns the function that releases it.
 */
export function lockFolder(folder: string, name = 'the data folder'): () => void {
  const path = join(folder, 'lock')
  const mine = `${process.pid} ${findStartTime(process.pid) ?? ''}\n`
  counter += 1
  const draft = join(folder, `lock.${process.pid}.${counter}`)
  writeFileSync(draft, mine, { mode: 0o600 })
  try {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      // A link appears at once and whole, so nobody reads a half-written lock.
      if (tryLink(draft, path)) return () => release(path, mine)
      const theirs = readText(path)
      if (theirs === undefined) continue
      if (isHeld(theirs)) throw inUse(`${name} ${folder}`, theirs)
      setAside(path, theirs)
    }
  } finally {
    rmSync(draft, { force: true })
  }
  throw new DatabaseSetupError(
    `the lock of ${folder} could not be taken: several processes try at once`,
  )
}

/** Returns true for the names of the files by which folders are locked. */
export function isLockFile(name: string): boolean {
  return /^lock(\.|$)/.test(name)
}

/** True where a running process holds the folder. */
export function isLocked(folder: string): boolean {
  const content = readText(join(folder, 'lock'))
  return content !== undefined && isHeld(content)
}

function isHeld(content: string): boolean {
  const { pid, startTime } = parse(content)
  if (!Number.isSafeInteger(pid) || pid <= 0 || !isAlive(pid)) return false
  return startTime === '' || startTime === (findStartTime(pid) ?? '')
}

/** Moves a stale lock away. Two may find the same one; whoever moves a fresh one by mistake puts it back. */
function setAside(path: string, stale: string): void {
  counter += 1
  const aside = `${path}.stale.${process.pid}.${counter}`
  try {
    renameSync(path, aside)
  } catch {
    return
  }
  if (readText(aside) !== stale) tryLink(aside, path)
  rmSync(aside, { force: true })
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') return false
    if (code !== undefined && withoutLinks.has(code)) return tryCopy(from, to)
    throw error
  }
}

/** The errors of file systems without links, such as those of many removable disks. */
const withoutLinks: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])

function tryCopy(from: string, to: string): boolean {
  try {
    copyFileSync(from, to, constants.COPYFILE_EXCL)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

function release(path: string, mine: string): void {
  if (readText(path) === mine) rmSync(path, { force: true })
}

function inUse(folder: string, content: string): DatabaseSetupError {
  const { pid } = parse(content)
  return new DatabaseSetupError(
    `${folder} is in use by the process ${pid}; stop that process or choose another folder`,
  )
}

function parse(content: string): { readonly pid: number; readonly startTime: string } {
  const [pid = '', ...rest] = content.trim().split(' ')
  return { pid: Number(pid), startTime: rest.join(' ') }
}
