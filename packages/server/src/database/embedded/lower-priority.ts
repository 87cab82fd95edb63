import { writeFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { findErrorCode } from '../../base/files.ts'

/** About a tenth of the processor time of a process with none, where both want all of it. */
const niceness = 10

/** Linux lets a user without privileges change one group in 100 ms. */
const tries = { times: 20, everyMs: 150 } as const

/**
 * Lets a server process of this machine run behind all others, for as long as it lives: heavy reads then take what
 * short reads, writes and payments leave. Where the system refuses it, the process keeps its priority, as that of a
 * server elsewhere does.
 */
export async function lowerPriority(pid: number): Promise<void> {
  try {
    setPriority(pid, niceness)
    await lowerGroup(pid)
  } catch {
    // It is of another user whom we may not touch, or has ended.
  }
}

/**
 * Where Linux groups the processes of each session by itself (`sched_autogroup_enabled`), the groups share the
 * processors, and a priority counts within its group only. Each process of PostgreSQL is a session of its own.
 */
async function lowerGroup(pid: number): Promise<void> {
  for (let tried = 0; tried < tries.times; tried++) {
    try {
      return await writeFile(`/proc/${pid}/autogroup`, String(niceness), { flag: 'r+' })
    } catch (error) {
      if (findErrorCode(error) !== 'EAGAIN') throw error
      await sleep(tries.everyMs, undefined, { ref: false })
    }
  }
}
