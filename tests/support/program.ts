import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { getBundle } from './bundle.ts'
import type { Kill, KillMessage } from './kill.ts'

/** A flag of the program, or `--wait`: it loads, and starts when told to `go`. */
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
  /** Starts a program that waits. */
  readonly go: () => void
  /** Orders the kill (see kill.ts); resolves once the program knows it. */
  readonly arm: (kill: Kill) => Promise<void>
  /** Resolves once the kill has happened, whether the program lives on or not. */
  readonly killed: () => Promise<void>
}

/** By default a heap grows into the gigabytes before it is cleared; in a small heap a leak soon shows. */
const smallHeap = '--max-old-space-size=256'

/** Starts the real program as a process of its own, on a data folder. */
export function startProgram(dataDir: string, flags: readonly Flag[] = []): Program {
  const file = getBundle('tests/support/serve.ts')
  const child = spawn(process.execPath, [smallHeap, file, dataDir, ...flags], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  let killed: Promise<unknown> = Promise.resolve()
  const waitForMessage = (what: KillMessage) =>
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
  // The caller of a program that must fail awaits its end, not its address.
  url.catch(() => undefined)
  return {
    pid: getPid(child),
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
    arm: async (kill) => {
      killed = Promise.race([waitForMessage('struck'), ended])
      const armed = waitForMessage('armed')
      child.send(kill)
      await armed
    },
    killed: async () => {
      await killed
    },
  }
}

function getPid(child: ChildProcess): number {
  if (child.pid === undefined) throw new Error('the program could not be started')
  return child.pid
}
