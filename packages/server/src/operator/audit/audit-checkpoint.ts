import { readFileSync } from 'node:fs'
import { FormatError } from '@tollbase/verify/bytes'
import {
  parseCheckpoint,
  type SignedCheckpoint,
  verifyCheckpoint,
} from '@tollbase/verify/checkpoint'
import { isFields, parseJson, requireText } from '@tollbase/verify/fields'
import { ConfigError } from '../../config/config-file.ts'
import type { ChainPlace } from '../maintenance.ts'

type Difference = Readonly<Record<string, unknown>>

/** A checkpoint that somebody kept: the state of the log at some time, signed by the service. */
export type KeptCheckpoint = { readonly file: string; readonly note: string } & Pick<
  SignedCheckpoint,
  'origin' | 'size' | 'root'
>

/** Reads a file with the signed note, or with the JSON that the service gave with it. */
export function readKeptCheckpoint(file: string): KeptCheckpoint {
  try {
    const text = readFileSync(file, 'utf8')
    const document = text.startsWith('{') ? parseJson(text, 'it') : undefined
    const note = isFields(document) ? requireText(document, 'checkpoint') : text
    const { origin, size, root } = parseCheckpoint(note)
    return { file, note, origin, size, root }
  } catch (error) {
    if (!(error instanceof FormatError || (error instanceof Error && 'code' in error))) throw error
    throw new ConfigError(`--checkpoint ${file}: ${error.message}`)
  }
}

/** Throws a ConfigError where a checkpoint is not of a chain of this service, or not signed by its key. */
export function refuseStrangers(
  checkpoints: readonly KeptCheckpoint[],
  places: readonly ChainPlace[],
): void {
  for (const { file, note, origin } of checkpoints) {
    // All chains of a service have one key, each under a name of its own.
    const place = places.find((one) => one.origin === origin)
    const verdict = place && verifyCheckpoint(note, place.vkey)
    if (verdict?.ok === true) continue
    const problem = verdict?.problem ?? `this service has no chain ${origin}`
    throw new ConfigError(`--checkpoint ${file}: ${problem}`)
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
  for (const { file, origin, size, root } of checkpoints) {
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
    }
  }
  return undefined
}
