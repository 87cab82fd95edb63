import type { ProofBlock } from '@tollbase/verify/block'
import type { Inclusion } from '@tollbase/verify/inclusion'
import type { RecordProof } from '@tollbase/verify/proof'
import { requirePresent } from '../base/assert.ts'
import type { FoundEntry } from './entry-reader.ts'
import { encodeHashes, planInclusion } from './proofs.ts'
import type { TileReader } from './tile-reader.ts'

/** The members of a RecordProof beside its type and application. */
export type EntryProof = Omit<RecordProof, 'type' | 'app' | 'entry' | 'leaf_hash'> & {
  readonly block: ProofBlock
} & ({ readonly entry: string } | { readonly entry?: never; readonly leaf_hash: string })

/** A proof that holds the hash of its entry and not the entry. */
export type HashProof = Extract<EntryProof, { readonly leaf_hash: string }>

/** An entry of a committed block, and the tree that it is proven against. */
export type Proven = {
  readonly found: FoundEntry
  readonly height: number
  readonly sequence: number
  readonly tree: {
    readonly size: number
    /** The signed note of the tree of this size. */
    readonly checkpoint: string
    /** The verifier key of the chain. */
    readonly key: string
    readonly tiles: TileReader
  }
}

/** Collects everything that proves an entry; of an erased one the hash is left. */
export async function proveEntry(proven: Proven): Promise<EntryProof> {
  const { found, tree } = proven
  const frame = frameProof(proven)
  const [inclusion, { bytes, leafHash }] = await Promise.all([
    proveInclusion(tree.tiles, { index: frame.leaf_index, size: tree.size }),
    found.read(),
  ])
  const leaf =
    bytes === undefined
      ? { leaf_hash: leafHash.toString('hex') }
      : { entry: bytes.toString('base64') }
  return { ...frame, ...leaf, inclusion }
}

/** Collects what proves the hash of an entry. The leaf stands beside the first hash of its path: one reading finds both. */
export async function proveHash(proven: Proven): Promise<HashProof> {
  const { size, tiles } = proven.tree
  const frame = frameProof(proven)
  const { leaf_index: index } = frame
  const plan = planInclusion(index, size)
  const [leaf, ...path] = await tiles.hashes([[{ height: 0, index }], ...plan])
  const leaf_hash = requirePresent(leaf, 'the hash of a leaf').toString('hex')
  return { ...frame, leaf_hash, inclusion: { index, size, hashes: encodeHashes(path) } }
}

/** Proves that a leaf is in the tree of this size. */
export async function proveInclusion(
  tiles: TileReader,
  { index, size }: { readonly index: number; readonly size: number },
): Promise<Inclusion> {
  return { index, size, hashes: encodeHashes(await tiles.hashes(planInclusion(index, size))) }
}

function frameProof({ found, height, sequence, tree }: Proven) {
  return {
    height,
    sequence,
    leaf_index: found.firstLeaf + sequence,
    checkpoint: tree.checkpoint,
    block: { header: found.headerText, signature: found.signature.toString('base64') },
    key: tree.key,
  }
}
