import type { Failpoint } from '../../packages/server/src/base/failpoints.ts'
import { realWorld, type World } from '../../packages/server/src/base/world.ts'

/** The real world, except that the test may move its clock, and break off work at a failpoint by an error. */
export type TestWorld = World & {
  /** Moves the clock; from then on it runs on at its usual pace. */
  readonly advance: (ms: number) => void
  /** Does at once whatever is done at intervals of this length. */
  readonly passInterval: (ms: number) => void
  /** Called at each failpoint from now on. */
  readonly atFailpoints: (call: ((point: Failpoint) => void) | undefined) => void
}

export function makeTestWorld(): TestWorld {
  let shiftMs = 0
  const repeated = new Set<{ readonly ms: number; readonly call: () => void }>()
  let reach: ((point: Failpoint) => void) | undefined
  return {
    ...realWorld,
    now: () => realWorld.now() + shiftMs,
    advance: (ms) => {
      shiftMs += ms
    },
    every: (ms, call) => {
      const one = { ms, call }
      repeated.add(one)
      const stop = realWorld.every(ms, call)
      return () => {
        repeated.delete(one)
        stop()
      }
    },
    passInterval: (ms) => {
      for (const one of [...repeated]) if (one.ms === ms) one.call()
    },
    failpoint: (point) => reach?.(point),
    atFailpoints: (call) => {
      reach = call
    },
  }
}
