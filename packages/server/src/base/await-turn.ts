const waiting: (() => void)[] = []

/**
 * Yields to other work. One waiting task continues in each round of the event loop. So a short task waits for one step
 * of a long task per round, however many long tasks there are.
 */
export function awaitTurn(): Promise<void> {
  return new Promise((resolve) => {
    waiting.push(resolve)
    if (waiting.length === 1) setImmediate(next)
  })
}

function next(): void {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(next)
}
