import { createLog } from '../../../packages/server/src/operator/log.ts'

const linesMax = 20

/** A log whose last lines are kept: what the service tells its operator of an error that it hides from callers. */
export function logLines() {
  const lines: string[] = []
  const write = (line: string) => {
    lines.push(line.trimEnd())
    if (lines.length > linesMax) lines.shift()
  }
  return { log: createLog('error', { write }), last: () => [...lines] }
}
