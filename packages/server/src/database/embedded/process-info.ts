import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { World } from '../../base/world.ts'

const pollMs = 10

/** True where a process of this id runs, whoever owns it; a zombie (dead, not yet collected) does not count. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  return !/^State:\s+[ZX]/m.test(readText(`/proc/${pid}/status`) ?? '')
}

/**
 * The start time tells a process from a later one of the same id; undefined where there is none or the system does
 * not say.
 */
export function findStartTime(pid: number): string | undefined {
  const stat = readText(`/proc/${pid}/stat`)
  // Field 22 of proc(5), counted after the command name, which may itself contain spaces and brackets.
  if (stat !== undefined) return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return ps(pid, 'lstart=')
}

export function findCommandLine(pid: number): string | undefined {
  return readText(`/proc/${pid}/cmdline`)?.replaceAll('\0', ' ') ?? ps(pid, 'command=')
}

/** Polls until `check` is true; false where the time ran out. */
export async function waitUntil(
  world: World,
  timeoutMs: number,
  check: () => boolean,
): Promise<boolean> {
  const deadline = world.now() + timeoutMs
  while (!check()) {
    if (world.now() >= deadline) return false
    await world.sleep(pollMs)
  }
  return true
}

export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
}

/** Asks `ps`, on systems without /proc. */
function ps(pid: number, column: string): string | undefined {
  if (process.platform === 'linux') return undefined
  try {
    return (
      execFileSync('ps', ['-o', column, '-p', String(pid)], { encoding: 'utf8' }).trim() ||
      undefined
    )
  } catch {
    return undefined
  }
}
