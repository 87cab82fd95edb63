import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FaultPoint } from '../../packages/server/src/base/failpoints.ts'
import { realWorld, type World } from '../../packages/server/src/base/world.ts'

/** What dies without a chance to tidy up, or (pause) stands still until SIGCONT. */
export type Act = 'service' | 'database' | 'both' | 'pause'

/** What happens to the program when it comes to a point for the `time`th time (from 1) after it was told. */
export type Strike = { readonly point: FaultPoint; readonly time: number; readonly act: Act }

/** What the program tells: it has been armed, or it survived being struck. */
export type Told = 'armed' | 'struck'

/** The real world of the test program, which strikes as its parent says by messages. */
export function strikingWorld(dataDir: string): World {
  let armed: Strike | undefined
  let passed = 0
  const tell = (told: Told) => process.send?.(told)
  process.on('message', (strike: Strike) => {
    armed = strike
    passed = 0
    tell('armed')
  })
  // The channel alone must not keep the program from ending.
  process.channel?.unref()
  const reach = (point: FaultPoint) => {
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
  return { ...realWorld, reach }
}

/** Kills every process of the embedded PostgreSQL at once, as a power loss would. */
export function killDatabase(dataDir: string): void {
  const first = postmaster(dataDir)
  const others = read(`/proc/${first}/task/${first}/children`).split(' ').filter(Boolean)
  for (const pid of [first, ...others.map(Number)]) kill(pid)
}

/** The database's first process, from the file it keeps. */
export function postmaster(dataDir: string): number {
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
    // It has just ended.
  }
}
