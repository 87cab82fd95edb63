import { decodeBase64, encodeBase64 } from './bytes.ts'
import { attempt, type Check, makeCheck } from './check.ts'
import type { Checkpoint, CheckpointVerdict } from './checkpoint.ts'
import { type Fields, requireCount, requireTexts } from './fields.ts'
import { verifyInclusion } from './tree.ts'

/** An audit path as documents carry it; the hashes are base64, from the leaf up. */
export type Inclusion = {
  readonly index: number
  readonly size: number
  readonly hashes: readonly string[]
}

/** A consistency proof as documents carry it. */
export type Consistency = {
  readonly from: number
  readonly to: number
  readonly hashes: readonly string[]
}

export type InclusionParts = {
  readonly leafIndex: number
  /** The leaf's hash (see `hashLeaf`), computed when it is checked. */
  readonly leaf: () => Uint8Array
  readonly inclusion: Inclusion
}

export function formatHashes(hashes: readonly Uint8Array[]): readonly string[] {
  return hashes.map(encodeBase64)
}

export function parseInclusion(fields: Fields): Inclusion {
  return {
    index: requireCount(fields, 'index'),
    size: requireCount(fields, 'size'),
    hashes: requireTexts(fields, 'hashes'),
  }
}

export function checkCheckpoint(verdict: CheckpointVerdict): Check {
  return verdict.ok
    ? {
        name: 'checkpoint',
        ok: true,
        detail: `signed for ${verdict.checkpoint.size} entries of ${verdict.checkpoint.origin}`,
      }
    : { name: 'checkpoint', ok: false, detail: verdict.problem }
}

/** Checks that the leaf is the one at its index in the checkpoint's tree. */
export function checkInclusion(
  parts: InclusionParts,
  checkpoint: Pick<Checkpoint, 'size' | 'root'> | undefined,
): Check {
  return attempt('inclusion', () => {
    const { leafIndex, inclusion } = parts
    if (checkpoint === undefined)
      return {
        name: 'inclusion',
        ok: false,
        detail: 'there is no valid checkpoint to check against',
      }
    const included =
      inclusion.index === leafIndex &&
      inclusion.size === checkpoint.size &&
      verifyInclusion({
        index: inclusion.index,
        size: inclusion.size,
        leaf: parts.leaf(),
        proof: inclusion.hashes.map(decodeBase64),
        root: checkpoint.root,
      })
    return makeCheck('inclusion', included, {
      good: `the entry is leaf ${leafIndex} of the signed tree of ${checkpoint.size}`,
      bad: `the entry is not leaf ${leafIndex} of the signed tree`,
    })
  })
}
