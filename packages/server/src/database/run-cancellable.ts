import type { World } from '../base/world.ts'

/** How often a statement is cancelled that still runs: the first may have come before the statement did. */
const againMs = 50

/**
 * Does the work, during which a connection is ours; `cancel` is to break off what that connection runs, and is called
 * from the moment on in which the signal is aborted.
 */
export async function whileWanted<T>(
  options: {
    readonly signal: AbortSignal
    readonly cancel: () => Promise<unknown>
    readonly world: World
  },
  work: () => Promise<T>,
): Promise<T> {
  const { signal, world } = options
  let cancelling: Promise<unknown> = Promise.resolve()
  let stop: () => void = () => undefined
  const cancel = () => {
    cancelling = Promise.all([cancelling, options.cancel().catch(() => undefined)])
  }
  const abort = () => {
    cancel()
    stop = world.every(againMs, cancel)
  }
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  try {
    return await work()
  } finally {
    signal.removeEventListener('abort', abort)
    stop()
    // One that is still on its way would meet what this connection does next.
    await cancelling
  }
}
