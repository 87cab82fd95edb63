import pino from 'pino'
import { type RunningService, startService } from './app.ts'
import type { World } from './base/world.ts'
import { realWorld } from './base/world.ts'
import type { Config } from './config.ts'

export type Output = {
  readonly line: (text: string) => void
  readonly error: (text: string) => void
}

const drainMs = 20_000

/** Runs the service until it is told to end; the exit code. The ready line is the only one on stdout that programs read. */
export async function serve(
  config: Config,
  output: Output,
  world: World = realWorld,
): Promise<number> {
  const log = pino({ level: 'info', base: null }, pino.destination({ dest: 2, sync: true }))
  const end = ending()
  const running = await startService({ config, world, log, onFatal: end.fatal })
  announce(running, config, output)
  const code = await end.promise
  log.info({ code }, 'draining')
  const closed = running.close().then(() => code)
  const late = world.sleep(drainMs).then(() => {
    log.error({}, 'did not drain in time')
    return 1
  })
  return Promise.race([closed, late])
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

function ending(): { promise: Promise<number>; fatal: (reason: string) => void } {
  let finish: (code: number) => void = () => undefined
  const promise = new Promise<number>((resolve) => {
    finish = resolve
  })
  process.once('SIGTERM', () => finish(0))
  process.once('SIGINT', () => finish(0))
  return { promise, fatal: () => finish(1) }
}
