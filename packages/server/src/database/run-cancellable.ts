import type { World } from '../base/world.ts'

/**
 * Interval at which a running statement is cancelled again: the first cancel may have come before the statement
 * did.
 */
const againMs = 50

/**
 * Does the work, for which this connection is checked out. From the abort of the signal on, `cancel` is called
 * repeatedly; it must cancel what the connection runs.
 */
export async function runCancellable<T>(
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
    // A cancel still on its way would hit the connection's next statement.
    await cancelling
  }
}
