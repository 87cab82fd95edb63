import { encodeGroupStarts, formatBlockHeader } from '@tollbase/verify/block'
import type { Entry } from '@tollbase/verify/entry'
import { awaitTurn } from '../base/await-turn.ts'
import type { World } from '../base/world.ts'
import type { Beside } from './beside.ts'
import type { BlockRow } from './block-store.ts'
import type { Group } from './entries.ts'
import { type CompletedTile, concatHashes, hashBytes, type MerkleTree, sha256 } from './merkle.ts'
import type { Signer } from './signing.ts'

/** The last committed block, or its stand-in before the first one. */
export type Head = {
  readonly height: number
  /** SHA-256 of its header. */
  readonly hash: Buffer
  /** Milliseconds since 1970. */
  readonly time: number
  /** Leaves of the tree. */
  readonly size: number
  readonly root: Buffer
}

export type BuiltBlock = BlockRow & {
  readonly head: Head
  readonly entries: readonly Entry[]
  readonly tiles: readonly CompletedTile[]
  /** The ids of the named requests that its entries belong to; entries of other work have none. */
  readonly notes: readonly string[]
  readonly beside: Beside | undefined
}

/** A group of entries that waits for its block. */
export type Waiting = {
  readonly group: Group
  readonly beside: Beside | undefined
  /** The id of the named request that the entries belong to. */
  readonly note: string | undefined
}

/** The identity of a chain's producer, and the tree that its blocks grow. */
export type BlockMaker = {
  readonly signer: Signer
  readonly world: World
  readonly origin: string
  readonly epoch: number
  readonly tree: MerkleTree
  /** Called with the tiles that a block makes full, before its commit begins. */
  readonly onTiles: (tiles: readonly CompletedTile[]) => void
}

/** Leaves that are put into the tree without a pause. */
const leavesAtOnce = 256

/** Makes the block of these groups that follows `previous`, signed; the tree has its leaves then. */
export async function buildBlock(
  batch: readonly Waiting[],
  previous: Head,
  maker: BlockMaker,
): Promise<BuiltBlock> {
  const { world, signer, origin, epoch, tree } = maker
  const groups = batch.map(({ group }) => group)
  const body = concatHashes(groups.map((group) => group.body))
  const leafHashes = concatHashes(groups.map((group) => group.leafHashes))
  const entries =
    groups.length === 1 ? (groups[0]?.entries ?? []) : groups.flatMap((group) => group.entries)
  const groupStarts = listGroupStarts(groups)
  const tiles = await growTree(maker, leafHashes)
  const height = previous.height + 1
  const time = Math.max(world.now(), previous.time + 1)
  const root = tree.root()
  const { size } = tree
  const text = formatBlockHeader({
    origin,
    height,
    previousHash: previous.hash,
    time,
    treeSize: size,
    root,
    bodyHash: sha256(body),
    groupsHash: sha256(encodeGroupStarts(groupStarts)),
    entryCount: entries.length,
    epoch,
  })
  const header = Buffer.from(text)
  const head = { height, hash: sha256(header), time, size, root }
  const row = {
    height,
    header,
    signature: signer.sign(header),
    firstLeaf: previous.size,
    entryCount: entries.length,
  }
  const notes = batch.flatMap(({ note }) => (note === undefined ? [] : [note]))
  const beside = batch.find((one) => one.beside !== undefined)?.beside
  return { ...row, groupStarts, body, leafHashes, head, entries, tiles, notes, beside }
}

/**
 * Appends the leaf hashes to the tree and returns the tiles that became full. It yields between steps; a reader finds
 * each tile at every moment.
 */
async function growTree(
  { tree, onTiles }: BlockMaker,
  leafHashes: Buffer,
): Promise<readonly CompletedTile[]> {
  const tiles: CompletedTile[] = []
  const step = leavesAtOnce * hashBytes
  for (let from = 0; from < leafHashes.length; from += step) {
    if (from > 0) await awaitTurn()
    tree.append(leafHashes.subarray(from, from + step))
    const full = tree.takeFullTiles()
    if (full.length > 0) onTiles(full)
    tiles.push(...full)
  }
  return tiles
}

function listGroupStarts(groups: readonly Group[]): number[] {
  let next = 0
  return groups.map((group) => {
    const start = next
    next += group.entries.length
    return start
  })
}
