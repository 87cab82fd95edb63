import type { CommitmentProof } from '@tollbase/verify/celestia/commitment-proof'
import { parseCommitmentProof } from '@tollbase/verify/celestia/commitment-proof'
import {
  type CelestiaHeader,
  formatBlockHash,
  hashHeader,
  parseHeader,
  parseHeaderTime,
} from '@tollbase/verify/celestia/header'
import type { JournaledBlob } from './blob-journal.ts'

/** The block that has a blob, and the proof of it. */
export type PlacedBlobParts = {
  readonly height: number
  /** Upper-case hexadecimal. */
  readonly hash: string
  /** ISO 8601. */
  readonly time: string
  readonly header: CelestiaHeader
  readonly proof: CommitmentProof
}

/** Describes where a blob is; undefined where no block is known to have it. */
export function describePlaced(blob: JournaledBlob): PlacedBlobParts | undefined {
  const { height, header: text, proof } = blob
  if (blob.state !== 'placed' || height === null || text === null || proof === null)
    return undefined
  const header = parseHeader(JSON.parse(text))
  return {
    ...{ height, header },
    hash: formatBlockHash(hashHeader(header)),
    time: parseHeaderTime(header),
    proof: parseCommitmentProof(JSON.parse(proof)),
  }
}
