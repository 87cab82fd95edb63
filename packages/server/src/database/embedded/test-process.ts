import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

export type TestProcess = {
  /** The value that the program gave to `report`. */
  readonly reported: unknown
  readonly pid: number
  /** SIGKILL, as a crash or the system's memory killer does it. */
  readonly kill: () => Promise<void>
}

const prelude = `
const load = (...names) => Promise.all(names.map((name) => import(new URL(name, ${JSON.stringify(import.meta.url)}).href)))
const report = (value) => process.stdout.write(JSON.stringify(value) + '\\n')
`

/**
 * Runs a program (JavaScript text) in a process of its own that stays alive until killed, for what a test cannot
 * do to its own process. The program has `load(...files of this folder)` and must call `report(value)` once.
 */
export async function spawnTestProcess(program: string): Promise<TestProcess> {
  const loader = createRequire(import.meta.url).resolve('tsx')
  const code = `${prelude}${program}\nsetInterval(() => undefined, 1000)`
  const args = ['--import', loader, '--input-type=module', '--eval', code]
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const reported = await Promise.race([firstLine(child), ended.then(() => undefined)])
  if (reported === undefined) throw new Error('the test process ended without a report')
  return {
    reported: JSON.parse(reported),
    pid: child.pid ?? 0,
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

async function firstLine({ stdout }: ChildProcess): Promise<string | undefined> {
  if (stdout === null) return undefined
  for await (const line of createInterface({ input: stdout })) return line
  return undefined
}
