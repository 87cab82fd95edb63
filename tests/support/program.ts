import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

export type Program = {
  readonly pid: number
  /** http://host:port once it listens; rejects with what it wrote where it ends before. */
  readonly url: Promise<string>
  /** Everything written so far, to either stream. */
  readonly output: () => string
  /** Sends the signal and waits for the end; the exit code, null where the signal ended it. */
  readonly end: (signal: NodeJS.Signals) => Promise<number | null>
  /** Waits for the end; the exit code. */
  readonly ended: Promise<number | null>
}

/** The real program as a process of its own, on a data folder. */
export function startProgram(dataDir: string): Program {
  const loader = createRequire(import.meta.url).resolve('tsx')
  const file = fileURLToPath(new URL('serve.ts', import.meta.url))
  const child = spawn(
    process.execPath,
    ['--conditions=source', '--import', loader, file, dataDir],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let output = ''
  const ended = once(child, 'close').then(() => child.exitCode)
  const url = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
        const ready = /^tollbase listening on (\S+)$/m.exec(output)?.[1]
        if (ready !== undefined) resolve(ready)
      })
    }
    ended.then((code) => reject(new Error(`the program ended with ${code}: ${output}`)), reject)
  })
  // A program that is meant to fail is asked for its end, not for its address.
  url.catch(() => undefined)
  return {
    pid: pidOf(child),
    url,
    output: () => output,
    ended,
    end: (signal) => {
      child.kill(signal)
      return ended
    },
  }
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('the program could not be started')
  return child.pid
}
