import { base64, fromBase64 } from './bytes.ts'
import { attempt, type Check, check } from './check.ts'
import type { CheckpointVerdict, SignedCheckpoint } from './checkpoint.ts'
import { countField, type Fields, textsField } from './fields.ts'
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
  /** See `leafHash`; read when it is checked. */
  readonly leaf: () => Uint8Array
  readonly inclusion: Inclusion
}

export function formatHashes(hashes: readonly Uint8Array[]): readonly string[] {
  return hashes.map(base64)
}

export function readInclusion(fields: Fields): Inclusion {
  return {
    index: countField(fields, 'index'),
    size: countField(fields, 'size'),
    hashes: textsField(fields, 'hashes'),
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

/** That the leaf is the one at its index in the checkpoint's tree. */
export function checkInclusion(
  parts: InclusionParts,
  checkpoint: SignedCheckpoint | undefined,
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
        proof: inclusion.hashes.map(fromBase64),
        root: checkpoint.root,
      })
    return check('inclusion', included, {
      good: `the entry is leaf ${leafIndex} of the signed tree of ${checkpoint.size}`,
      bad: `the entry is not leaf ${leafIndex} of the signed tree`,
    })
  })
}
