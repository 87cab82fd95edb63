import type { World } from './world.ts'

/** Resolves as the promise does, or to `otherwise` where it takes longer than `ms`. Never keeps the process alive. */
export async function awaitWithin<T, O>(
  promise: Promise<T>,
  limit: { readonly world: World; readonly ms: number; readonly otherwise: O },
): Promise<T | O> {
  let stop: () => void = () => undefined
  const late = new Promise<O>((resolve) => {
    stop = limit.world.every(limit.ms, () => resolve(limit.otherwise))
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    stop()
  }
}
