import { type BlockHeader, decodeBlockBody, parseBlockHeader } from '@tollbase/verify/block'
import { decodeEntry, type Entry } from '@tollbase/verify/entry'
import { assert } from '../base/assert.ts'
import type { BlockRow } from './block-store.ts'
import { hashBytes, hashLeaf, sha256 } from './merkle.ts'

/** A parsed block: its header is well formed, and body and position match the header. */
export type Block = {
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
  /** Bytes of the entries. */
  readonly bodyBytes: number
  /** Sequences at which the groups start; a group is what one append call brought. */
  readonly groupStarts: readonly number[]
  /** Decoded when they are asked for: a proof needs one of thousands. Undefined where erased. */
  readonly entry: (sequence: number) => Entry | undefined
  readonly entries: readonly (Entry | undefined)[]
  /** The leaf's bytes, as they were hashed; undefined where erased. */
  readonly entryBytes: (sequence: number) => Buffer | undefined
  readonly leafHash: (sequence: number) => Buffer
}

/** Parses a row; throws where it is damaged. The audit tells more. */
export function parseBlock(row: BlockRow): Block {
  const { height, signature, firstLeaf, groupStarts, leafHashes } = row
  const headerText = row.header.toString()
  const header = parseBlockHeader(headerText)
  const matches =
    header.height === height &&
    header.treeSize === firstLeaf + row.entryCount &&
    header.entryCount === row.entryCount &&
    leafHashes.length === row.entryCount * hashBytes
  const views = matches ? decodeBlockBody(row.body) : []
  if (!matches || !isWhole(row, header, views))
    throw new Error(`block ${height} is damaged: its row does not match its header; run the audit`)
  let decoded: readonly (Entry | undefined)[] | undefined
  return {
    height,
    time: header.time,
    hash: sha256(row.header),
    header,
    headerText,
    signature,
    firstLeaf,
    bodyBytes: row.body.length,
    groupStarts,
    entry: (sequence) => {
      const view = views[sequence]
      return view && decodeEntry(view)
    },
    get entries() {
      decoded ??= views.map((view) => view && decodeEntry(view))
      return decoded
    },
    entryBytes: (sequence) => {
      assert(sequence in views, `entry ${sequence} of block ${height}`)
      const view = views[sequence]
      return view && Buffer.from(view.buffer, view.byteOffset, view.byteLength)
    },
    leafHash: (sequence) => leafHashes.subarray(sequence * hashBytes, (sequence + 1) * hashBytes),
  }
}

/** The hash of the body vouches for all entries; once some are erased, the hash of each vouches for the others. */
function isWhole(
  { body, entryCount, leafHashes }: BlockRow,
  header: BlockHeader,
  views: readonly (Uint8Array | undefined)[],
): boolean {
  if (!views.includes(undefined)) return sha256(body).equals(header.bodyHash)
  const isLeaf = (view: Uint8Array | undefined, at: number) =>
    view === undefined ||
    hashLeaf(view).equals(leafHashes.subarray(at * hashBytes, (at + 1) * hashBytes))
  return views.length === entryCount && views.every(isLeaf)
}
