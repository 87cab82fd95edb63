import { readdirSync, readFileSync } from 'node:fs'

export type Process = {
  readonly pid: number
  readonly parent: number
  readonly name: string
  /** The processor time, user and system, of the process and of its children that have ended. */
  readonly cpuMs: number
}

/** USER_HZ of Linux on every machine that Node has builds for. */
const ticksPerSecond = 100

export function listProcesses(): Process[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((entry) => {
      try {
        return [parseStat(Number(entry), readFileSync(`/proc/${entry}/stat`, 'latin1'))]
      } catch {
        return []
      }
    })
}

/** proc(5): after the name in parentheses come state, parent, ..., and 14 to 17, the times in ticks. */
function parseStat(pid: number, stat: string): Process {
  const after = stat.lastIndexOf(')')
  const fields = stat.slice(after + 2).split(' ')
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0)
  return {
    pid,
    parent: Number(fields[1]),
    name: stat.slice(stat.indexOf('(') + 1, after),
    cpuMs: (ticks * 1000) / ticksPerSecond,
  }
}

export function listDescendants(pid: number, all: readonly Process[]): Process[] {
  return all.flatMap((one) => (one.parent === pid ? [one, ...listDescendants(one.pid, all)] : []))
}

/**
 * Computes the processor time that a process and all below it have used until now, those that have ended included.
 */
export function computeCpuMs(pid: number): number {
  const all = listProcesses()
  const own = all.filter((one) => one.pid === pid)
  return [...own, ...listDescendants(pid, all)].reduce((sum, one) => sum + one.cpuMs, 0)
}

export function findParentPid(pid: number): number {
  return listProcesses().find((one) => one.pid === pid)?.parent ?? 0
}
