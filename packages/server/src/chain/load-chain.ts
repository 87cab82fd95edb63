import { noBlockHash, verifyBlockSignature } from '@tollbase/verify/block'
import { emptyRoot } from '@tollbase/verify/tree'
import type { Database, Queryable } from '../database/database.ts'
import { BlockStore, type Watermark } from './block-store.ts'
import type { Head } from './build-block.ts'
import { MerkleTree, Tile, tileWidth } from './merkle.ts'
import { type Block, parseBlock } from './parse-block.ts'
import type { Signer } from './signing.ts'

/** The head that every chain begins from. */
export const genesis: Head = {
  height: 0,
  hash: Buffer.from(noBlockHash),
  time: 0,
  size: 0,
  root: Buffer.from(emptyRoot),
}

/** See ChainOptions. */
export type LoadOptions = {
  readonly database: Database
  readonly schema: string
  readonly origin: string
  readonly signer: Pick<Signer, 'publicKey'>
  readonly prepare?: (snapshot: Queryable) => Promise<void>
}

export type LoadedChain = {
  readonly head: Head
  readonly tree: MerkleTree
  readonly watermark: Watermark
}

/**
 * Reads head, tree and watermark, and whatever `prepare` reads, in one snapshot: the previous holder may still be
 * at work and commit or apply a block between two statements. (The primary key of the next block detects its later
 * commits, the next step of the applier loop its later applications.) Throws where the last header is not ours or
 * the tree has another root than it says: a chain that is damaged there must not grow.
 */
export function loadChain({
  database,
  schema,
  origin,
  signer,
  prepare,
}: LoadOptions): Promise<LoadedChain> {
  const read = async (snapshot: Queryable) => {
    const store = new BlockStore(snapshot, schema)
    const end = await readEnd(store, origin, signer.publicKey)
    const watermark = await store.watermark()
    if (watermark.height > end.head.height)
      throw new Error(`the chain ${schema} ends below its watermark; run the audit`)
    await prepare?.(snapshot)
    return { ...end, watermark }
  }
  return database.transaction(read, { isolation: 'repeatable read' })
}

async function readEnd(
  store: BlockStore,
  origin: string,
  publicKey: Uint8Array,
): Promise<Pick<LoadedChain, 'head' | 'tree'>> {
  const row = await store.last()
  if (row === undefined) return { head: genesis, tree: new MerkleTree() }
  const last = parseBlock(row)
  const problem = findProblem(last, origin, publicKey)
  if (problem !== undefined) throw new Error(`the chain ${origin} cannot be opened: ${problem}`)
  const { treeSize: size, root, time } = last.header
  const tree = await loadTree(store, size)
  if (!tree.root().equals(root)) {
    throw new Error(
      `the chain ${origin} cannot be opened: its tree is not that of block ${last.height}; run the audit`,
    )
  }
  return { head: { height: last.height, hash: last.hash, time, size, root: tree.root() }, tree }
}

function findProblem(last: Block, origin: string, publicKey: Uint8Array): string | undefined {
  if (last.header.origin !== origin) return `block ${last.height} belongs to ${last.header.origin}`
  if (!verifyBlockSignature(last.headerText, last.signature, publicKey)) {
    return `block ${last.height} is not signed with this server's key`
  }
  return undefined
}

/**
 * Makes the tree of the full tiles that have no full parent, largest first, and the leaves after the last of
 * them.
 */
async function loadTree(store: BlockStore, size: number): Promise<MerkleTree> {
  const tree = new MerkleTree()
  let level = 0
  while (size >= tileWidth ** (level + 2)) level += 1
  for (; level >= 0; level--) {
    const leaves = tileWidth ** (level + 1)
    for (const tile of await store.tiles(level, tree.size / leaves, Math.floor(size / leaves))) {
      tree.appendTile(level, Tile.load(tile.hashes))
    }
  }
  if (tree.size < size) tree.append(await store.leafHashesFrom(tree.size))
  tree.takeFullTiles()
  return tree
}
