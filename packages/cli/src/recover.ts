import { SetupError } from '@tollbase/server/base/setup-error'
import { FormatError } from '@tollbase/verify/bytes'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import type { Command } from 'commander'
import { makeProgressLine } from './progress.ts'

type RecoverFlags = {
  readonly rpc: string
  readonly key: string
  readonly to: string
  readonly sender?: string
  readonly contract?: string
  readonly fromBlock?: string
  readonly json?: boolean
}

/** `tollbase recover`: exit 0 when a log was found whole, 1 when it has two histories, 2 when it could not run. */
export function addRecoverCommand(program: Command, finish: (code: number) => void): void {
  program
    .command('recover')
    .description("build up an application's log from what was published of it on another chain")
    .requiredOption('--rpc <url>', 'a node of that chain')
    .requiredOption(
      '--key <vkey>',
      "the log's public key (`key` of GET /api/apps/{app}/chain/checkpoint), from a place you trust",
    )
    .requiredOption('--to <folder>', 'an empty folder')
    .option(
      '--sender <address>',
      'read only transactions of this address, and skip those of others',
    )
    .option(
      '--contract <address>',
      'the contract of contracts/Anchors.sol, where not the usual one',
    )
    .option('--from-block <number>', 'the first block of that chain to look at', '0')
    .option('--json', 'print the result as JSON')
    .action(async (flags: RecoverFlags) => finish(await recover(flags)))
}

async function recover(flags: RecoverFlags): Promise<number> {
  const { rpc, key, to, sender, contract, json } = flags
  const fromBlock = checkFlags(flags)
  const { recoverLog } = await import('@tollbase/server/operator/recover/recover-log')
  const line = makeProgressLine(json !== true)
  try {
    const options = { rpc, key, to, sender, contract, fromBlock }
    const { equal, problem, ...report } = await recoverLog(options, line.update)
    line.end()
    if (json === true) console.log(JSON.stringify({ equal, problem, ...report }))
    else {
      const { origin, blocks, entries, hidden, root } = report
      console.log(
        `${origin}: ${blocks} blocks, ${entries} entries (${entries - hidden} whole, ${hidden} as hashes)`,
      )
      console.log(`root: ${root ?? 'none'}; compare it with a checkpoint of ${entries} entries`)
      if (problem !== undefined) console.error(`TWO HISTORIES: ${problem}`)
    }
    return equal ? 0 : 1
  } catch (error) {
    line.end()
    const message = describe(error)
    if (json === true) console.log(JSON.stringify({ error: message }))
    else console.error(`tollbase: ${message}`)
    return 2
  }
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return 'internal' in error && typeof error.internal === 'string' ? error.internal : error.message
}

function checkFlags({ rpc, key, sender, contract, fromBlock = '0' }: RecoverFlags): bigint {
  if (!URL.canParse(rpc) || !/^https?:$/.test(new URL(rpc).protocol))
    throw new SetupError(`--rpc must be a URL of http or https, not ${rpc}`)
  for (const [name, value] of Object.entries({ sender, contract }))
    if (value !== undefined && !/^0x[0-9a-fA-F]{40}$/.test(value))
      throw new SetupError(`--${name} must be an address, not ${value}`)
  if (!/^\d{1,15}$/.test(fromBlock))
    throw new SetupError(`--from-block must be the number of a block, not ${fromBlock}`)
  try {
    parseVerifierKey(key)
  } catch (error) {
    if (error instanceof FormatError) throw new SetupError(`--key: ${error.message}`)
    throw error
  }
  return BigInt(fromBlock)
}
