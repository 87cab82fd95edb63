import { createLog } from '../../../packages/server/src/operator/log.ts'

const linesMax = 20

/**
 * Captures the last lines of a log, in which the service tells its operator of an error that it hides from callers.
 */
export function captureLog() {
  const lines: string[] = []
  const write = (line: string) => {
    lines.push(line.trimEnd())
    if (lines.length > linesMax) lines.shift()
  }
  return { log: createLog('error', { write }), last: () => [...lines] }
}
