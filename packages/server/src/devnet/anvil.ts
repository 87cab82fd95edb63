import { type ChildProcess, spawn } from 'node:child_process'
import { accessSync, chmodSync, constants, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { SetupError } from '../base/setup-error.ts'
import type { World } from '../base/world.ts'

/** A process, told apart from a later one of the same id by its start time. */
export type ProcessId = { readonly pid: number; readonly started: string }

const stopTimeoutMs = 30_000
const pollMs = 20
/** Snapshots of recent blocks kept in memory; without any, calls at "latest" fail while blocks come. */
const historyBlocks = 64

/** Starts a chain that outlives this process; all of its files are inside the folder. */
export function spawnAnvil(options: {
  readonly folder: string
  /** State to load, if given; anvil never writes it. */
  readonly stateFile: string | undefined
  readonly chainId: number
  /** Seconds since 1970; the same at every start, because a loaded chain keeps the new block 0 too. */
  readonly genesisTime: number
  readonly port: number
}): { readonly child: ChildProcess; readonly pid: number | undefined } {
  const { folder, stateFile, chainId, genesisTime, port } = options
  const args = [
    ...['--host', '127.0.0.1', '--port', String(port), '--chain-id', String(chainId), '--quiet'],
    ...['--prune-history', String(historyBlocks), '--accounts', '0'],
    ...['--timestamp', String(genesisTime)],
    ...(stateFile === undefined ? [] : ['--load-state', stateFile]),
  ]
  const child = spawn(anvilBinary(), args, {
    cwd: folder,
    detached: true,
    stdio: 'ignore',
    // The caller's environment does not change the chain, and nothing is written elsewhere.
    env: { HOME: folder, TMPDIR: folder },
  })
  child.unref()
  return { child, pid: child.pid }
}

/** Finds a running process; undefined where there is none (an ended, uncollected one does not count). */
export function findProcess(pid: number): ProcessId | undefined {
  if (process.platform !== 'linux') {
    return isRunning(pid) ? { pid, started: 'unknown' } : undefined
  }
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // After the name in parentheses: field 3 is the state, field 22 the start in ticks since boot.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const started = fields[19]
    return fields[0] === 'Z' || started === undefined ? undefined : { pid, started }
  } catch {
    return undefined
  }
}

/** Ends exactly this process: politely, then by force. */
export async function stopProcess(target: ProcessId, world: World): Promise<void> {
  const forceAt = world.now() + stopTimeoutMs
  const same = () => findProcess(target.pid)?.started === target.started
  if (same()) signal(target.pid, 'SIGTERM')
  while (same()) {
    if (world.now() > forceAt) signal(target.pid, 'SIGKILL')
    await world.sleep(pollMs)
  }
}

/** Returns the wanted port where it is free, or any free one. */
export async function findFreePort(wanted: number | undefined): Promise<number> {
  if (wanted !== undefined && (await tryPort(wanted)) !== undefined) return wanted
  const port = await tryPort(0)
  if (port === undefined) throw new Error('no free port on 127.0.0.1')
  return port
}

function tryPort(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer()
    server.on('error', () => resolve(undefined))
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      const given = typeof address === 'object' ? address?.port : undefined
      server.close(() => resolve(given))
    })
  })
}

/** The binary inside the npm package of this platform. */
function anvilBinary(): string {
  const architecture = process.arch === 'x64' ? 'amd64' : process.arch
  const name = `@foundry-rs/anvil-${process.platform}-${architecture}`
  const folder = packageFolder(name)
  const file = join(folder, 'bin', process.platform === 'win32' ? 'anvil.exe' : 'anvil')
  try {
    accessSync(file, constants.X_OK)
  } catch {
    // Some ways of installing lose the permission to execute.
    chmodSync(file, 0o755)
  }
  return file
}

function packageFolder(name: string): string {
  const require = createRequire(import.meta.url)
  try {
    // The package of the platform is installed for @foundry-rs/anvil and may lie beside it only.
    const paths = [import.meta.dirname, require.resolve('@foundry-rs/anvil/package.json')]
    return join(require.resolve(`${name}/package.json`, { paths }), '..')
  } catch (error) {
    throw new SetupError(
      `the devnet needs the optional package ${name}: install it (npm install @foundry-rs/anvil), or start without --devnet`,
      { cause: error },
    )
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

function signal(pid: number, name: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(pid, name)
  } catch {
    // The process has ended by itself.
  }
}
