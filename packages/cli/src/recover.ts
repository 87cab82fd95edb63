import { readFileSync } from 'node:fs'
import { explainReadError } from '@tollbase/server/base/files'
import { SetupError } from '@tollbase/server/base/setup-error'
import type { ChunkSource } from '@tollbase/server/operator/recover/open-chunks'
import { FormatError } from '@tollbase/verify/bytes'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import type { Command } from 'commander'
import { checkUrl } from './check-url.ts'
import { printProblem } from './print-line.ts'
import { makeProgressLine } from './progress.ts'

type RecoverFlags = {
  readonly rpc?: string
  readonly celestia?: string
  readonly tokenFile?: string
  readonly toBlock?: string
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
    .option('--rpc <url>', 'a node of that chain, where it is an EVM chain')
    .option('--celestia <url>', 'a celestia-node, where it is Celestia')
    .option('--token-file <file>', 'the token that the celestia-node asks for')
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
    .option(
      '--from-block <number>',
      'the first block of that chain to look at; the first that the node has when not given',
    )
    .option('--to-block <number>', 'the last one; Celestia only')
    .option('--json', 'print the result as JSON')
    .action(async (flags: RecoverFlags) => finish(await recover(flags)))
}

async function recover(flags: RecoverFlags): Promise<number> {
  const { key, to, json } = flags
  const source = readSource(flags)
  const { recoverLog } = await import('@tollbase/server/operator/recover/recover-log')
  const line = makeProgressLine(json !== true)
  try {
    const { equal, problem, ...report } = await recoverLog({ ...source, key, to }, line.update)
    line.end()
    if (json === true) console.log(JSON.stringify({ equal, problem, ...report }))
    else {
      const { origin, blocks, entries, hidden, oversized, root } = report
      console.log(
        `${origin}: ${blocks} blocks, ${entries} entries (${entries - hidden} whole, ${hidden} as hashes)`,
      )
      console.log(`root: ${root ?? 'none'}; compare it with a checkpoint of ${entries} entries`)
      if (oversized > 0)
        console.error(
          `${oversized} bundles were passed over: they are larger than what a service sends. If blocks are missing, read what one sender sent, with --sender`,
        )
      if (problem !== undefined) console.error(`TWO HISTORIES: ${problem}`)
    }
    return equal ? 0 : 1
  } catch (error) {
    line.end()
    const message = describe(error, flags)
    if (json === true) console.log(JSON.stringify({ error: message }))
    else printProblem(`tollbase: ${message}`)
    return 2
  }
}

function describe(error: unknown, { rpc, celestia }: RecoverFlags): string {
  if (!(error instanceof Error)) return String(error)
  const isOfNode = 'internal' in error || error.name === 'TransportError'
  const problem = 'internal' in error ? String(error.internal ?? error.message) : error.message
  if (!isOfNode) return problem
  return `${rpc === undefined ? `--celestia ${celestia}` : `--rpc ${rpc}`}: ${problem}`
}

/** Checks the flags, and returns the node to ask with all that is asked of it. */
function readSource(flags: RecoverFlags): ChunkSource {
  const { rpc, celestia, tokenFile, key, sender, contract } = flags
  const fromBlock = parseBlock('--from-block', flags.fromBlock)
  const toBlock = parseBlock('--to-block', flags.toBlock)
  for (const [name, value] of Object.entries({ sender, contract }))
    if (value !== undefined && !/^0x[0-9a-fA-F]{40}$/.test(value))
      throw new SetupError(`--${name} must be an address, not ${value}`)
  try {
    parseVerifierKey(key)
  } catch (error) {
    if (error instanceof FormatError) throw new SetupError(`--key: ${error.message}`)
    throw error
  }
  if (celestia !== undefined) {
    refuseFlags({ rpc, sender, contract }, 'of EVM chains')
    checkUrl('--celestia', celestia)
    const token = tokenFile === undefined ? undefined : readTokenFile(tokenFile)
    return { celestia, token, fromBlock, toBlock }
  }
  refuseFlags({ 'token-file': tokenFile, 'to-block': flags.toBlock }, 'of Celestia')
  if (rpc === undefined) throw new SetupError('name a node by --rpc or --celestia')
  checkUrl('--rpc', rpc)
  return { rpc, sender, contract, fromBlock }
}

function refuseFlags(flags: Readonly<Record<string, string | undefined>>, what: string): void {
  for (const [name, value] of Object.entries(flags))
    if (value !== undefined) throw new SetupError(`--${name} is a flag ${what}`)
}

function parseBlock(flag: string, text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text))
    throw new SetupError(`${flag} must be the number of a block, not ${text}`)
  return BigInt(text)
}

function readTokenFile(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new SetupError(`--token-file ${path} cannot be read: ${explainReadError(error)}`)
  }
}
