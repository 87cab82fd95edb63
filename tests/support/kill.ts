import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { realWorld, type World } from '../../packages/server/src/base/world.ts'

/** The part that dies without a chance to tidy up, or (pause) stands still until SIGCONT. */
export type Act = 'service' | 'database' | 'both' | 'pause'

/** The order to harm the program when it reaches a point for the `time`th time (from 1) after it was armed. */
export type Kill = { readonly point: Failpoint; readonly time: number; readonly act: Act }

/** The program's message: it has been armed, or it survived the kill. */
export type KillMessage = 'armed' | 'struck'

/** Makes the real world of the test program, in which the parent's messages order kills. */
export function makeKillingWorld(dataDir: string): World {
  let armed: Kill | undefined
  let passed = 0
  const tell = (message: KillMessage) => process.send?.(message)
  process.on('message', (order: Kill) => {
    armed = order
    passed = 0
    tell('armed')
  })
  // An open channel alone must not keep the program from ending.
  process.channel?.unref()
  const reach = (point: Failpoint) => {
    if (armed?.point !== point) return
    passed += 1
    if (passed < armed.time) return
    const { act } = armed
    armed = undefined
    tell('struck')
    if (act === 'database' || act === 'both') killDatabase(dataDir)
    if (act === 'service' || act === 'both') process.kill(process.pid, 'SIGKILL')
    if (act === 'pause') process.kill(process.pid, 'SIGSTOP')
  }
  return { ...realWorld, failpoint: reach }
}

/** Kills every process of the embedded PostgreSQL at once, as a power loss would. */
export function killDatabase(dataDir: string): void {
  const first = readPostmasterPid(dataDir)
  const others = read(`/proc/${first}/task/${first}/children`).split(' ').filter(Boolean)
  for (const pid of [first, ...others.map(Number)]) kill(pid)
}

/** Reads the id of the database's first process from the file that it keeps. */
export function readPostmasterPid(dataDir: string): number {
  const pid = Number(read(join(dataDir, 'postgres', 'postmaster.pid')).split('\n')[0])
  if (!Number.isSafeInteger(pid) || pid <= 1) throw new Error(`no database runs on ${dataDir}`)
  return pid
}

function read(path: string): string {
  return readFileSync(path, 'utf8').trim()
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // The process has just ended.
  }
}
