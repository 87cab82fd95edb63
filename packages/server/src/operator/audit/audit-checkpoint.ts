import { readFileSync } from 'node:fs'
import { FormatError } from '@tollbase/verify/bytes'
import {
  parseCheckpoint,
  type SignedCheckpoint,
  verifyCheckpoint,
} from '@tollbase/verify/checkpoint'
import { isFields, parseJson, requireText } from '@tollbase/verify/fields'
import { parseReceipt, receiptType, verifyReceipt } from '@tollbase/verify/receipt'
import { explainReadError } from '../../base/files.ts'
import { ConfigError } from '../../config/config-file.ts'
import type { ChainPlace } from '../maintenance.ts'

type Difference = Readonly<Record<string, unknown>>

/** A checkpoint that somebody kept: the state of the log at some time, signed by the service. */
export type KeptCheckpoint = { readonly file: string; readonly note: string } & Pick<
  SignedCheckpoint,
  'origin' | 'size' | 'root'
> & {
    /** The receipt that the checkpoint came with, whose sale it covers. */
    readonly receipt?: {
      readonly document: unknown
      readonly paymentId: string /** The place of its sale in the log. */
      readonly leaf: number
    }
  }

/** Reads a file with the signed note, with the JSON that the service gave with it, or with a receipt. */
export function readKeptCheckpoint(file: string): KeptCheckpoint {
  try {
    const text = readFileSync(file, 'utf8')
    const document = text.startsWith('{') ? parseJson(text, 'it') : undefined
    if (isFields(document) && document.type === receiptType) {
      const { payment_id: paymentId, ledger } = parseReceipt(document)
      const { origin, size, root } = parseCheckpoint(ledger.checkpoint)
      const receipt = { document, paymentId, leaf: ledger.leaf_index }
      return { file, note: ledger.checkpoint, origin, size, root, receipt }
    }
    const note = isFields(document) ? requireText(document, 'checkpoint') : text
    const { origin, size, root } = parseCheckpoint(note)
    return { file, note, origin, size, root }
  } catch (error) {
    if (!(error instanceof FormatError || (error instanceof Error && 'code' in error))) throw error
    throw new ConfigError(`--checkpoint ${file}: ${explainReadError(error)}`)
  }
}

/** Throws a ConfigError where a checkpoint or receipt is not of a chain of this service, or not signed by its key. */
export function refuseStrangers(
  checkpoints: readonly KeptCheckpoint[],
  places: readonly ChainPlace[],
): void {
  for (const { file, note, origin, receipt } of checkpoints) {
    // All chains of a service have one key, each under a name of its own.
    const place = places.find((one) => one.origin === origin)
    const verdict = place && verifyCheckpoint(note, place.vkey)
    const problem =
      verdict?.ok === true
        ? receipt && findReceiptProblem(receipt.document, place?.vkey)
        : (verdict?.problem ?? `this service has no chain ${origin}`)
    if (problem !== undefined) throw new ConfigError(`--checkpoint ${file}: ${problem}`)
  }
}

/** Finds out why a receipt proves nothing; one that holds has its sale in the tree of its checkpoint. */
function findReceiptProblem(document: unknown, trustedKey?: string): string | undefined {
  try {
    return verifyReceipt(document, { trustedKey }).checks.find(({ ok }) => !ok)?.detail
  } catch (error) {
    if (error instanceof FormatError) return error.message
    throw error
  }
}

/**
 * Lists the checkpoints that a chain must agree with: those that somebody kept, and the last one of the service that
 * its application was moved from, which counts as one of this chain's.
 */
export function listCheckpoints(
  kept: readonly KeptCheckpoint[],
  { app, origin, movedFrom }: ChainPlace,
): readonly KeptCheckpoint[] {
  if (movedFrom === undefined) return kept
  const { checkpoint: note, key } = movedFrom
  const verdict = verifyCheckpoint(note, key)
  if (!verdict.ok)
    throw new ConfigError(`${app} was moved with a wrong checkpoint: ${verdict.problem}`)
  const { size, root } = verdict.checkpoint
  return [...kept, { file: `the checkpoint that ${app} was moved with`, note, origin, size, root }]
}

/**
 * Finds the first checkpoint that the chain contradicts: the root of its tree at that size must be the
 * checkpoint's.
 */
export function findContradiction(
  checkpoints: readonly KeptCheckpoint[],
  chain: {
    readonly origin: string
    readonly roots: ReadonlyMap<number, Uint8Array>
    readonly entries: number
  },
): Difference | undefined {
  for (const { file, origin, size, root, receipt } of checkpoints) {
    if (origin !== chain.origin || size === 0) continue
    const found = chain.roots.get(size)
    if (found !== undefined && Buffer.from(root).equals(found)) continue
    return {
      what: `the tree of ${size} entries, as ${file} says`,
      expected: Buffer.from(root).toString('base64'),
      found:
        found === undefined
          ? `a log of ${chain.entries} entries`
          : Buffer.from(found).toString('base64'),
      ...(receipt && { payment: receipt.paymentId, entry: receipt.leaf }),
    }
  }
  return undefined
}
