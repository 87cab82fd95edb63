import { realWorld, type World } from '../../packages/server/src/base/world.ts'

/** The real world, except that the test may move its clock. */
export type TestWorld = World & {
  /** Moves the clock; from then on it runs on at its usual pace. */
  readonly advance: (ms: number) => void
}

export function makeTestWorld(): TestWorld {
  let shiftMs = 0
  return {
    ...realWorld,
    now: () => realWorld.now() + shiftMs,
    advance: (ms) => {
      shiftMs += ms
    },
  }
}
