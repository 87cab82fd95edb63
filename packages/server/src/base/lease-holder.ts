import { hostname } from 'node:os'
import type { World } from './world.ts'

/**
 * Makes a name for this process that is unique among all that share a database: its host, its process id, and
 * random characters.
 */
export function makeHolderName(world: World): string {
  return `${hostname()}/${process.pid}/${world.randomBytes(8).toString('hex')}`
}

/**
 * True where the holder's process ran on this host and is gone, as after a crash: nobody need wait for its lease to
 * expire.
 */
export function isHolderGone(holder: string): boolean {
  const [host, pid] = holder.split('/')
  if (host !== hostname() || Number(pid) === process.pid) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}
