import type { Logger } from 'pino'
import { type RunningService, startService } from './app.ts'
import type { World } from './base/world.ts'
import { realWorld } from './base/world.ts'
import type { Config } from './config/config.ts'
import { ConfigError } from './config/config-file.ts'
import { createLog, openLogDestination } from './operator/log.ts'
import { findStartProblem } from './start-problem.ts'

export type Output = {
  readonly line: (text: string) => void
  readonly error: (text: string) => void
}

/** The time for all that ends after the requests: readers, chains, the database. */
const closeMs = 15_000

/**
 * Runs the service until it is told to end, and returns the exit code. The ready line is the only one on stdout
 * that programs read. Throws a ConfigError where the port, the data folder or the database cannot be used.
 */
export async function serve(
  config: Config,
  output: Output,
  world: World = realWorld,
): Promise<number> {
  const log = createLog(config.logLevel, await openLogDestination(config.logFormat))
  const end = waitForEnd(world)
  const running = await startService({ config, world, log, onFatal: end.fatal }).catch(
    (error: unknown) => {
      // A terminal sends Ctrl-C to the database's processes, too, so that a start fails by it.
      if (end.isTold()) return undefined
      const problem = findStartProblem(error, config)
      throw problem === undefined ? error : new ConfigError(problem)
    },
  )
  if (running === undefined) {
    log.info('told to end before it was ready')
    return 0
  }
  announce(running, config, output)
  const code = await end.promise
  log.info({ code }, 'draining')
  return closeInTime(running, { world, log, code, withinMs: config.drainMs + closeMs })
}

/** Does not use world.sleep, which would keep a process alive that has long drained. */
function closeInTime(
  running: RunningService,
  end: { world: World; log: Logger; code: number; withinMs: number },
): Promise<number> {
  const { world, log, code, withinMs } = end
  return new Promise((resolve) => {
    const stop = world.every(withinMs, () => {
      stop()
      log.error({}, 'did not drain in time')
      resolve(1)
    })
    const failed = (error: unknown) => {
      log.error({ error: String(error) }, 'something did not end in order')
      return 1
    }
    void running
      .close()
      .then(() => code, failed)
      .then(resolve)
      .finally(stop)
  })
}

function announce(running: RunningService, config: Config, output: Output): void {
  const { key, isNew, path } = running.operatorKey
  if (isNew) output.line(`operator key (kept in ${path}, shown this once): ${key}`)
  if (running.devnet !== undefined) {
    output.line(
      `devnet: chain ${running.devnet.chainId} at ${running.devnet.rpcUrl}, test dollars from POST ${running.url}/devnet/faucet`,
    )
  }
  if (config.networks.length === 0 && running.devnet === undefined) {
    output.line(
      'no payment network is configured: nothing can be sold until tollbase.config.json names one (or use `tollbase dev`)',
    )
  }
  output.line(`docs: ${running.url}/docs`)
  output.line(`tollbase listening on ${running.url}`)
}

/**
 * A terminal sends Ctrl-C to npm and to us, and npm passes it on: what comes within this time is the same key stroke,
 * and must not cut an orderly end short. A later one ends the process at once.
 */
const keyStrokeMs = 1_000

type End = {
  readonly promise: Promise<number>
  readonly fatal: (reason: string) => void
  /** Returns whether a signal has come. */
  readonly isTold: () => boolean
}

function waitForEnd(world: World): End {
  let finish: (code: number) => void = () => undefined
  const promise = new Promise<number>((resolve) => {
    finish = resolve
  })
  let isTold = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const end = () => {
      isTold = true
      finish(0)
      const stop = world.every(keyStrokeMs, () => {
        stop()
        process.off(signal, end)
      })
    }
    process.on(signal, end)
  }
  return { promise, fatal: () => finish(1), isTold: () => isTold }
}
