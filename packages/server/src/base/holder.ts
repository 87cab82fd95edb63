import { hostname } from 'node:os'
import type { World } from './world.ts'

/** Names this process among all that share a database: its host, its process id, and what no later process repeats. */
export function holderName(world: World): string {
  return `${hostname()}/${process.pid}/${world.randomBytes(8).toString('hex')}`
}

/** True where the holder's process ran on this host and is gone, as after a crash: its lease need not run out. */
export function isGone(holder: string): boolean {
  const [host, pid] = holder.split('/')
  if (host !== hostname() || Number(pid) === process.pid) return false
  try {
    process.kill(Number(pid), 0)
    return false
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
}
