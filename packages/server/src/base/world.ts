import { randomBytes } from 'node:crypto'
import type { Failpoint } from './failpoints.ts'

/**
 * Everything that is not deterministic: time, ids and timers come only from here, so that a simulation can replay a
 * run from its seed.
 */
export type World = {
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Fractional milliseconds of a monotonic clock; only differences mean something. */
  readonly ticks: () => number
  /** Milliseconds for which this process had nothing to do, and waited for others; only differences mean something. */
  readonly idle: () => number
  readonly randomBytes: (count: number) => Buffer
  readonly sleep: (ms: number) => Promise<void>
  /** Calls back at this interval until the returned function is called. Never keeps the process alive. */
  readonly every: (ms: number, call: () => void) => () => void
  /** Called where a test may kill the process; only the worlds of tests have it. */
  readonly failpoint?: (point: Failpoint) => void
}

/** Most calls ask for the few bytes of an id: a call of the generator takes longer than what it makes. */
const pooledMax = 16
let pool = randomBytes(0)

function drawBytes(count: number): Buffer {
  if (count > pooledMax) return randomBytes(count)
  if (count > pool.length) pool = randomBytes(256 * pooledMax)
  const drawn = Buffer.from(pool.subarray(0, count))
  pool = pool.subarray(count)
  return drawn
}

export const realWorld: World = {
  now: () => Date.now(),
  ticks: () => performance.now(),
  idle: () => performance.nodeTiming.idleTime,
  randomBytes: drawBytes,
  sleep: (ms) => new Promise((resolve) => setTimeout(resolve, ms)),
  every: (ms, call) => {
    const timer = setInterval(call, ms)
    timer.unref()
    return () => clearInterval(timer)
  },
}
