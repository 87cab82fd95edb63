import { type BlockHeader, decodeBlockBody, parseBlockHeader } from '@tollbase/verify/block'
import { decodeEntry, type Entry } from '@tollbase/verify/entry'
import { assert } from '../base/assert.ts'
import { awaitTurn } from '../base/await-turn.ts'
import type { BlockRow } from './block-store.ts'
import { hashBytes, hashLeaf, sha256 } from './merkle.ts'

/** A block without its entries: its header is well formed, and its position matches the header. */
export type BlockOutline = {
  readonly height: number
  /** Milliseconds since 1970. */
  readonly time: number
  /** SHA-256 of the header. */
  readonly hash: Buffer
  readonly header: BlockHeader
  /** The text that was hashed and signed, see @tollbase/verify/block. */
  readonly headerText: string
  /** Ed25519 over the header. */
  readonly signature: Buffer
  readonly firstLeaf: number
  /** Sequences at which the groups start; a group is what one append call brought. */
  readonly groupStarts: readonly number[]
  readonly leafHash: (sequence: number) => Buffer
}

/** A parsed block: its body, too, matches the header. */
export type Block = BlockOutline & {
  /** Bytes of the entries. */
  readonly bodyBytes: number
  /** Decoded when they are asked for: a proof needs one of thousands. Undefined where erased. */
  readonly entry: (sequence: number) => Entry | undefined
  readonly entries: readonly (Entry | undefined)[]
  /** The leaf's bytes, as they were hashed; undefined where erased. */
  readonly entryBytes: (sequence: number) => Buffer | undefined
}

type Views = readonly (Uint8Array | undefined)[]

/** Leaves whose hashes are computed in one turn of the event loop: some 2 ms. */
const leavesAtOnce = 500
/** Bytes of a body that are looked through and hashed in one turn. */
const bytesAtOnce = 256 * 1024

/** Parses a row; throws where it is damaged. The audit tells more. */
export function parseBlock(row: BlockRow): Block {
  const outline = parseOutline(row)
  const views = decodeBlockBody(row.body)
  if (!(isErased(views) ? areLeaves(row, views) : isBody(row, outline))) throw makeDamaged(row)
  return makeBlock(outline, { row, views })
}

/** Parses the row of a block that a request asks for: a large one does not hold up the others. */
export async function parseBlockInTurns(row: BlockRow): Promise<Block> {
  const outline = parseOutline(row)
  const views = decodeBlockBody(row.body)
  if (!isErased(views)) {
    // To hash megabytes, and to find their entries, are two turns.
    if (row.body.length > bytesAtOnce) await awaitTurn()
    if (!isBody(row, outline)) throw makeDamaged(row)
    return makeBlock(outline, { row, views })
  }
  for (let from = 0; from < row.entryCount; from += leavesAtOnce) {
    if (!areLeaves(row, views, { from, to: from + leavesAtOnce })) throw makeDamaged(row)
    await awaitTurn()
  }
  return makeBlock(outline, { row, views })
}

/** Parses all but the body; throws where that is damaged. */
export function parseOutline(row: Omit<BlockRow, 'body'>): BlockOutline {
  const { height, signature, firstLeaf, groupStarts, leafHashes } = row
  const headerText = row.header.toString()
  const header = parseBlockHeader(headerText)
  const matches =
    header.height === height &&
    header.treeSize === firstLeaf + row.entryCount &&
    header.entryCount === row.entryCount &&
    leafHashes.length === row.entryCount * hashBytes
  if (!matches) throw makeDamaged(row)
  return {
    height,
    time: header.time,
    hash: sha256(row.header),
    header,
    headerText,
    signature,
    firstLeaf,
    groupStarts,
    leafHash: (sequence) => leafHashes.subarray(sequence * hashBytes, (sequence + 1) * hashBytes),
  }
}

function makeBlock(
  outline: BlockOutline,
  { row, views }: { readonly row: BlockRow; readonly views: Views },
): Block {
  let decoded: readonly (Entry | undefined)[] | undefined
  return {
    ...outline,
    bodyBytes: row.body.length,
    entry: (sequence) => {
      const view = views[sequence]
      return view && decodeEntry(view)
    },
    get entries() {
      decoded ??= views.map((view) => view && decodeEntry(view))
      return decoded
    },
    entryBytes: (sequence) => {
      assert(sequence in views, `entry ${sequence} of block ${row.height}`)
      const view = views[sequence]
      return view && Buffer.from(view.buffer, view.byteOffset, view.byteLength)
    },
  }
}

function isErased(views: Views): boolean {
  return views.includes(undefined)
}

/** The hash of the body vouches for all entries. */
function isBody({ body }: BlockRow, { header }: BlockOutline): boolean {
  return sha256(body).equals(header.bodyHash)
}

/** Once some entries are erased, the hash of each vouches for the others. */
function areLeaves(
  { entryCount, leafHashes }: BlockRow,
  views: Views,
  { from, to }: { readonly from: number; readonly to: number } = { from: 0, to: entryCount },
): boolean {
  const isLeaf = (view: Uint8Array | undefined, at: number) =>
    view === undefined ||
    hashLeaf(view).equals(leafHashes.subarray((from + at) * hashBytes, (from + at + 1) * hashBytes))
  return views.length === entryCount && views.slice(from, to).every(isLeaf)
}

function makeDamaged({ height }: Pick<BlockRow, 'height'>): Error {
  return new Error(`block ${height} is damaged: its row does not match its header; run the audit`)
}
