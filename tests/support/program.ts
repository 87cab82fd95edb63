import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { bundled } from './bundle.ts'
import type { Strike, Told } from './kill.ts'

/** As the program has them, and `--wait`: it loads, and starts when told to `go`. */
export type Flag = '--devnet' | `--config=${string}` | '--wait'

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
  /** Lets a program go that waits. */
  readonly go: () => void
  /** Tells it where to be struck (see strike.ts); resolves once it knows. */
  readonly arm: (strike: Strike) => Promise<void>
  /** Resolves once it was struck, whether it lives on or not. */
  readonly struck: () => Promise<void>
}

/** Left alone, a heap grows into the gigabytes before it is cleared; in a small one what leaks soon shows. */
const smallHeap = '--max-old-space-size=256'

/** The real program as a process of its own, on a data folder. */
export function startProgram(dataDir: string, flags: readonly Flag[] = []): Program {
  const file = bundled('tests/support/serve.ts')
  const child = spawn(process.execPath, [smallHeap, file, dataDir, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  let struck: Promise<unknown> = Promise.resolve()
  const told = (what: Told) =>
    new Promise<void>((resolve) => {
      const listen = (message: unknown) => {
        if (message !== what) return
        child.off('message', listen)
        resolve()
      }
      child.on('message', listen)
    })
  const ended = once(child, 'close').then(() => child.exitCode)
  const url = new Promise<string>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
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
    go: () => {
      child.send('go')
    },
    arm: async (strike) => {
      struck = Promise.race([told('struck'), ended])
      const armed = told('armed')
      child.send(strike)
      await armed
    },
    struck: async () => {
      await struck
    },
  }
}

function pidOf(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('the program could not be started')
  return child.pid
}
