import { readFile } from 'node:fs/promises'
import { explainReadError } from '@tollbase/server/base/files'
import { findAnchorProof } from '@tollbase/verify/anchor-proof'
import { FormatError } from '@tollbase/verify/bytes'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import { parseWitnessKey } from '@tollbase/verify/cosignature'
import { isFields } from '@tollbase/verify/fields'
import { type ReceiptOptions, receiptType } from '@tollbase/verify/receipt'
import {
  checkpointType,
  isNote,
  type Verdict,
  verifyDocument,
  verifyNote,
} from '@tollbase/verify/verify'
import type { Command } from 'commander'
import type { NodeToAsk } from './ask-node.ts'
import { printLine, showControls } from './print-line.ts'

type Options = {
  readonly key?: string
  readonly reply?: string
  readonly rpc?: string
  readonly tokenFile?: string
  readonly headerHash?: string
  readonly witness?: readonly string[]
  readonly json?: boolean
}

/**
 * `tollbase verify <file>`: exit 0 valid, 1 not valid, 2 could not be judged. No network is used but the node that
 * `--rpc` names.
 */
export function addVerifyCommand(program: Command, finish: (code: number) => void): void {
  program
    .command('verify')
    .description('check a receipt, a record proof or a checkpoint offline')
    .argument(
      '<file>',
      'a receipt or a record proof, as the service gave it, or the note of a checkpoint',
    )
    .option(
      '--key <vkey>',
      "the service's public key, from a place you trust; without it nothing is valid",
    )
    .option(
      '--reply <file>',
      'the answer that was bought, byte for byte, to compare with the receipt',
    )
    .option(
      '--rpc <url>',
      'a node of the chain with the anchor, to check that the chain has it; trust the result as far as you trust the node',
    )
    .option('--token-file <file>', 'the token that a celestia-node asks for, with --rpc')
    .option(
      '--header-hash <hex>',
      'the hash of the block of Celestia that has the anchor, from a place you trust',
    )
    .option(
      '--witness <vkey...>',
      'public keys of witnesses that you trust: each must have signed the checkpoint',
    )
    .option('--json', 'print the result as JSON')
    .action(async (file: string, options: Options) => finish(await verify(file, options)))
}

/** The reason that a file or an option cannot be used at all. */
class Unusable extends Error {
  override readonly name = 'Unusable'
}

async function verify(file: string, options: Options): Promise<number> {
  try {
    if (options.key !== undefined)
      checkKeyOption('--key', () => parseVerifierKey(options.key ?? ''))
    for (const witness of options.witness ?? [])
      checkKeyOption('--witness', () => parseWitnessKey(witness))
    const { headerHash } = options
    if (headerHash !== undefined && !/^[0-9a-fA-F]{64}$/.test(headerHash))
      throw new Unusable('--header-hash must be 64 hexadecimal digits')
    const text = (await readContent(file)).toString()
    const reply = options.reply === undefined ? undefined : await readContent(options.reply)
    const offline = isNote(text)
      ? verifyCheckpointNote(file, text, options)
      : verifyText(file, text, {
          ...{ trustedKey: options.key, reply, trustedHeaderHash: headerHash },
        })
    if (options.witness !== undefined && offline.type !== checkpointType)
      throw new Unusable(
        `${file}: --witness is for the note of a checkpoint; a ${offline.type} is not signed by witnesses`,
      )
    const verdict =
      options.rpc === undefined
        ? offline
        : await addChainCheck(offline, {
            ...{ file, text, url: options.rpc, token: await readToken(options.tokenFile) },
          })
    // A check that fails with the document's own key fails with every key.
    const isOpen = !verdict.trusted && verdict.checks.every(({ ok, name }) => ok || name === 'key')
    if (isOpen) throw new Unusable(missingKey(file, verdict.type))
    if (options.json === true) console.log(JSON.stringify(verdict, null, 2))
    else print(file, verdict)
    return verdict.ok ? 0 : 1
  } catch (error) {
    if (!(error instanceof Unusable)) throw error
    if (options.json === true) console.log(JSON.stringify({ error: error.message }))
    else console.error(showControls(`tollbase: ${error.message}`))
    return 2
  }
}

function missingKey(file: string, type: string): string {
  const source =
    type === receiptType
      ? '`receipt_public_key` of GET /.well-known/tollbase'
      : '`key` of GET /api/apps/{app}/chain/checkpoint'
  return (
    `${file}: not verified. Anybody can make such a document with their own key: give the service's public key with ` +
    `--key. It is ${source}; note it once, over a connection that you trust, and not beside the document.`
  )
}

function checkKeyOption(option: string, parse: () => unknown): void {
  try {
    parse()
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    throw new Unusable(`${option}: ${error.message}`)
  }
}

function verifyCheckpointNote(file: string, note: string, options: Options): Verdict {
  if ([options.rpc, options.reply, options.headerHash].some((one) => one !== undefined))
    throw new Unusable(
      `${file} is a checkpoint: --rpc, --reply and --header-hash are for proofs and receipts`,
    )
  return verifyNote(note, { trustedKey: options.key, witnessKeys: options.witness ?? [] })
}

async function readToken(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : (await readContent(file)).toString().trim()
}

async function readContent(file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (error) {
    throw new Unusable(`${file} cannot be read: ${explainReadError(error)}`)
  }
}

function verifyText(file: string, text: string, options: ReceiptOptions): Verdict {
  try {
    return verifyDocument(text, options)
  } catch (error) {
    if (!(error instanceof FormatError)) throw error
    throw new Unusable(`${file}: ${findRefusal(text) ?? error.message}`)
  }
}

/** Finds the refusal that a service answered in place of the document that was asked for. */
function findRefusal(text: string): string | undefined {
  const answer: unknown = parseOrNothing(text)
  if (!isFields(answer) || typeof answer.code !== 'string' || answer.type !== undefined)
    return undefined
  const { code, error } = answer
  return showControls(`it holds no document, but a refusal of the service (${code}: ${error})`)
}

function parseOrNothing(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Adds to the verdict what a node says of the anchor. */
async function addChainCheck(
  verdict: Verdict,
  { file, text, ...node }: NodeToAsk & { readonly file: string; readonly text: string },
): Promise<Verdict> {
  // A document that does not hold names a transaction that is of no interest.
  if (!verdict.ok) return verdict
  const proof = findAnchorProof(JSON.parse(text))
  if (proof === undefined)
    throw new Unusable(`${file}: it has no anchor, so there is nothing to ask ${node.url} about`)
  const { askNode } = await import('./ask-node.ts')
  const check = await askNode(node, proof)
  if (check.ok === undefined) throw new Unusable(`--rpc ${node.url}: ${check.detail}`)
  return {
    ...verdict,
    ok: check.ok,
    checks: [
      ...verdict.checks,
      { name: 'anchor on its chain', ok: check.ok, detail: check.detail },
    ],
    unchecked: verdict.unchecked.filter(({ name }) => name !== 'anchor'),
  }
}

function print(file: string, verdict: Verdict): void {
  for (const { name, ok, detail } of verdict.checks)
    printLine(`${ok ? '✓' : '✗'} ${name}: ${detail}`)
  if (verdict.ok)
    for (const { name, detail } of verdict.unchecked) printLine(`- ${name}, unchecked: ${detail}`)
  console.log(verdict.ok ? `${file}: valid` : `${file}: NOT valid`)
}
