import { setPriority } from 'node:os'

/** About a tenth of the processor time of a process with none, where both want all of it. */
const niceness = 10

/**
 * Lets a server process of this machine run behind all others, for as long as it lives: heavy reads then take what
 * short reads, writes and payments leave. Where the system refuses it, the process keeps its priority, as that of a
 * server elsewhere does.
 */
export function lowerPriority(pid: number): void {
  try {
    setPriority(pid, niceness)
  } catch {
    // It is of another user whom we may not touch, or has ended.
  }
}
