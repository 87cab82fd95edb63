import type { World } from './world.ts'

/** What the promise gives, or `otherwise` where it takes longer than this. Never keeps the process alive. */
export async function within<T, O>(
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
