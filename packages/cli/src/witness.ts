import { SetupError } from '@tollbase/server/base/setup-error'
import type { FollowedLog } from '@tollbase/server/witness/follow-log'
import type { Witness } from '@tollbase/server/witness/witness'
import { FormatError } from '@tollbase/verify/bytes'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import type { Command } from 'commander'
import { checkUrl } from './check-url.ts'
import { printProblem } from './print-line.ts'

type Flags = {
  readonly url: string
  readonly log: readonly string[]
  readonly appKey?: string
  readonly folder: string
  readonly name: string
  readonly every: string
  readonly listen?: string
  readonly once?: boolean
}

/**
 * `tollbase witness`: exit 1 when a log contradicts itself (or, with --once, is gone), 2 when it could not run; 0 when
 * it was stopped.
 */
export function addWitnessCommand(program: Command, finish: (code: number) => void): void {
  program
    .command('witness')
    .description(
      "follow a service's logs, and sign each checkpoint that goes on from the one before",
    )
    .requiredOption('--url <url>', 'the service')
    .requiredOption(
      '--log <vkey...>',
      'public keys of the logs to follow (`key` of GET /api/apps/{app}/chain/checkpoint), from a place you trust',
    )
    .option('--app-key <key>', 'a key with Read, for an application with nothing open to strangers')
    .option('--folder <folder>', "the witness's key and what it signed", './tollbase-witness')
    .option('--name <name>', "the witness's name, best a domain of yours", 'tollbase-witness')
    .option('--every <seconds>', 'time between two looks', '60')
    .option('--listen <host:port>', 'serve what was signed, for services and clients to read')
    .option('--once', 'look once and end')
    .action(async (flags: Flags) => finish(await runWitness(flags)))
}

const signals = ['SIGINT', 'SIGTERM'] as const

async function runWitness(flags: Flags): Promise<number> {
  const [{ openWitness }, { serveWitness }, { realWorld }] = await Promise.all([
    import('@tollbase/server/witness/witness'),
    import('@tollbase/server/witness/serve-witness'),
    import('@tollbase/server/base/world'),
  ])
  const logs = flags.log.map((vkey) => parseLog(vkey, flags))
  // The service's own log comes first: where it was rolled back, another one that is not shown is gone.
  logs.sort((one, other) => Number(other.app === 'system') - Number(one.app === 'system'))
  const everyMs = parseSeconds(flags.every) * 1000
  const at = flags.listen === undefined ? undefined : parseListen(flags.listen)
  const witness = await openWitness({ folder: flags.folder, name: flags.name, world: realWorld })
  console.log(`witness key: ${witness.vkey}`)
  const server = at && (await serveWitness(witness, at))
  if (server) console.log(`serving ${server.url}`)
  let isStopped = false
  const stop = () => {
    isStopped = true
  }
  for (const signal of signals) process.once(signal, stop)
  try {
    for (;;) {
      const { code, isContradicted } = await observeAll(witness, logs)
      if (isContradicted || flags.once === true || isStopped) return code
      for (let left = everyMs; left > 0 && !isStopped; left -= 200) await realWorld.sleep(200)
      if (isStopped) return 0
    }
  } finally {
    for (const signal of signals) process.off(signal, stop)
    await server?.close()
    witness.close()
  }
}

/** Looks at each log once: 1 where one contradicts itself or is gone, 2 where one gives no usable answer. */
async function observeAll(
  witness: Witness,
  logs: readonly FollowedLog[],
): Promise<{ readonly code: number; readonly isContradicted: boolean }> {
  let code = 0
  let isContradicted = false
  for (const log of logs) {
    const { name: origin } = parseVerifierKey(log.vkey)
    try {
      const look = await witness.follow(log)
      if (look.kind === 'consistent') {
        console.log(`${origin}: ${look.size} entries, signed`)
        continue
      }
      code = 1
      const kept = witness.listKept().find((one) => one.origin === origin)
      printProblem(`${origin}: ${look.kind.toUpperCase()}: ${look.problem}`)
      printProblem(`signed before:\n${kept?.note}`)
      if (look.kind === 'gone') continue
      isContradicted = true
      printProblem(`shown now:\n${look.note}`)
    } catch (error) {
      if (!(error instanceof Error && error.name === 'WitnessTrouble')) throw error
      printProblem(`${origin}: not signed: ${error.message}`)
      if (code === 0) code = 2
    }
  }
  return { code, isContradicted }
}

function parseLog(vkey: string, { url, appKey }: Flags): FollowedLog {
  checkUrl('--url', url)
  try {
    const { name } = parseVerifierKey(vkey)
    const app = name.slice(name.lastIndexOf('/') + 1)
    return { url: url.replace(/\/+$/, ''), app, vkey, appKey }
  } catch (error) {
    if (error instanceof FormatError) throw new SetupError(`--log: ${error.message}`)
    throw error
  }
}

function parseSeconds(text: string): number {
  const seconds = Number(text)
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 86_400)
    throw new SetupError(`--every must be 1 to 86400 seconds, not ${text}`)
  return seconds
}

function parseListen(text: string): { host: string; port: number } {
  const [, host, port] = /^(.+):(\d{1,5})$/.exec(text) ?? []
  if (host === undefined || Number(port) > 65_535)
    throw new SetupError(`--listen must be a host and a port such as 127.0.0.1:9093, not ${text}`)
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}
