import { readFileSync } from 'node:fs'
import { decodeBase64 } from '@tollbase/verify/bytes'
import { computeRoot } from '@tollbase/verify/celestia/commitment'
import type { CommitmentClaim, CommitmentProof } from '@tollbase/verify/celestia/commitment-proof'
import type { CelestiaHeader } from '@tollbase/verify/celestia/header'

type Roots = { readonly row_roots: readonly string[]; readonly column_roots: readonly string[] }

/** A recorded proof with the data root that it leads to, base64. */
export type RecordedProof = {
  readonly of: string
  readonly root: string
  readonly commitment_proof: CommitmentProof
}

export type RecordedHeader = {
  readonly block_hash: string
  readonly header: CelestiaHeader
  readonly dah: Roots
}

export const recordedProofs: readonly RecordedProof[] = readVector('commitment-proofs')
export const recordedHeaders: readonly RecordedHeader[] = readVector('headers')
export const recordedSquare: { readonly data_square: readonly string[]; readonly dah: Roots } =
  readVector('square')

/** Returns the claim that a recorded proof is for; the commitment is not recorded, as it follows from the subtree roots. */
export function getClaim({ commitment_proof: proof, root }: RecordedProof): CommitmentClaim {
  return {
    namespace: Uint8Array.of(0, ...decodeBase64(proof.namespace_id)),
    commitment: computeRoot(proof.subtree_roots.map(decodeBase64)),
    shares: proof.subtree_root_proofs.reduce((sum, { start = 0, end }) => sum + end - start, 0),
    dataRoot: decodeBase64(root),
  }
}

function readVector(name: string) {
  const file = new URL(`../../../packages/verify/vectors/celestia/${name}.json`, import.meta.url)
  return JSON.parse(readFileSync(file, 'utf8'))
}
