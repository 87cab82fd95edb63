import { readFileSync } from 'node:fs'

/** A meter that gives the longest turn of this process's event loop, in milliseconds. */
export type LoopMeter = { readonly stop: () => number }

const tickMs = 1

/**
 * Watches the event loop of this thread until it is stopped. A turn counts by the processor time that this thread
 * took in it where the system reports that (Linux), so that other programs on the machine do not count.
 */
export function meterLoop(): LoopMeter {
  let longest = 0
  let last = { at: performance.now(), busy: busyMs() }
  const look = () => {
    const now = { at: performance.now(), busy: busyMs() }
    const wall = now.at - last.at - tickMs
    const busy = now.busy === undefined || last.busy === undefined ? wall : now.busy - last.busy
    longest = Math.max(longest, Math.min(wall, busy))
    last = now
  }
  const timer = setInterval(look, tickMs)
  return {
    stop: () => {
      clearInterval(timer)
      look()
      return longest
    },
  }
}

/** Processor time of this thread so far. */
function busyMs(): number | undefined {
  try {
    const [nanoseconds] = readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')
    return Number(nanoseconds) / 1e6
  } catch {
    return undefined
  }
}
