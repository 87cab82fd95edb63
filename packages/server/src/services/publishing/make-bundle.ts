import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { deflateRaw } from 'node:zlib'
import type { Entry } from '@tollbase/verify/entry'
import { encodeBundle, encodeChunks, type PublishedBlock } from '@tollbase/verify/publication'
import type { Block } from '../../chain/parse-block.ts'
import { getPublishChoice, isPublished } from '../../model/publication.ts'
import type { Tenant } from '../applications/tenants.ts'

const compress = promisify(deflateRaw)

/** Bytes of entries after which a bundle takes no further block. */
const bundleBytes = 512 * 1024
/** Blocks of one bundle at most. */
const bundleBlocksMax = 1_000

/** Some blocks of an application as they are published now. */
export type BlockBundle = {
  readonly fromHeight: number
  readonly toHeight: number
  /** The tree at the end of the last block. */
  readonly size: number
  readonly root: Uint8Array
  /** SHA-256 of the compressed bundle. */
  readonly hash: Buffer
  readonly chunks: readonly Uint8Array[]
}

/**
 * Makes a bundle of the blocks from a height on: up to `toHeight` where that is given, otherwise as many as are there
 * and fit. Undefined where there are none.
 */
export async function makeBundle(
  { chain, data, application }: Pick<Tenant, 'chain' | 'data' | 'application'>,
  {
    fromHeight,
    toHeight,
    chunkBytesMax,
  }: {
    readonly fromHeight: number
    readonly toHeight?: number
    readonly chunkBytesMax: number
  },
): Promise<BlockBundle | undefined> {
  const blocks: Block[] = []
  let bytes = 0
  for await (const block of chain.blocksFrom(fromHeight)) {
    blocks.push(block)
    for (let at = 0; at < block.header.entryCount; at++) bytes += block.entryBytes(at)?.length ?? 0
    if (block.height === toHeight) break
    const isFull = bytes >= bundleBytes || blocks.length >= bundleBlocksMax
    if (toHeight === undefined && isFull) break
  }
  const last = blocks.at(-1)
  if (last === undefined) return undefined
  // A record of a collection that the catalog does not know yet would be left out.
  await chain.whenApplied(last.height)
  const choice = getPublishChoice(application)
  const isShown = (entry: Entry) => isPublished(data.catalog, choice, entry)
  const compressed = await compress(
    encodeBundle(blocks.map((block) => toPublished(block, isShown))),
  )
  return {
    fromHeight,
    toHeight: last.height,
    size: last.header.treeSize,
    root: last.header.root,
    hash: createHash('sha256').update(compressed).digest(),
    chunks: encodeChunks(compressed, chunkBytesMax),
  }
}

function toPublished(block: Block, isShown: (entry: Entry) => boolean): PublishedBlock {
  const entries = block.entries.map((entry, at) =>
    entry !== undefined && isShown(entry) ? block.entryBytes(at) : undefined,
  )
  const hidden = entries.flatMap((entry, at) => (entry === undefined ? [block.leafHash(at)] : []))
  const { headerText: header, signature, groupStarts } = block
  return { header, signature, groupStarts, entries, hidden }
}
