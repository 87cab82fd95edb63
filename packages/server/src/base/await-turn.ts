const waiting: (() => void)[] = []

/**
 * Lets others have their turn. In each round of the event loop one of all who wait goes on: so what is quick
 * waits for one piece of long work a round, however many pieces of work are under way.
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
