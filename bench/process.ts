import { type ChildProcess, spawn } from 'node:child_process'

export type Child = {
  readonly pid: number
  readonly port: number
  /** The text that the program wrote to stdout until it was ready. */
  readonly output: string
  readonly stop: () => Promise<void>
}

const readyTimeoutMs = 120_000
const stopTimeoutMs = 30_000

/** Starts a program, `node` by default, and waits until it prints an address or a port that it listens on. */
export async function startChild(
  args: readonly string[],
  program: string = process.execPath,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Child> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  const { output, port } = await ready(child)
  return { pid: child.pid ?? 0, port, output, stop: () => stop(child) }
}

function ready(child: ChildProcess): Promise<{ output: string; port: number }> {
  return new Promise((resolve, reject) => {
    let output = ''
    let errors = ''
    const late = setTimeout(() => reject(new Error(`not ready in time: ${errors}`)), readyTimeoutMs)
    child.stderr?.on('data', (chunk) => {
      errors = `${errors}${chunk}`.slice(-4000)
    })
    child.once('exit', (code) => reject(new Error(`ended with ${code} before ready: ${errors}`)))
    child.stdout?.on('data', (chunk) => {
      output += chunk
      const port = /listening on (?:\S*:)?(\d+)\n/.exec(output)?.[1]
      if (port === undefined) return
      clearTimeout(late)
      resolve({ output, port: Number(port) })
    })
  })
}

/** Ends this process by a signal, and by force after a while. */
function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return Promise.resolve()
  return new Promise((resolve) => {
    const force = setTimeout(() => child.kill('SIGKILL'), stopTimeoutMs)
    child.once('exit', () => {
      clearTimeout(force)
      resolve()
    })
    child.kill('SIGTERM')
  })
}
