import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import {
  type BlockHeader,
  decodeBlockBody,
  encodeGroupStarts,
  parseBlockHeader,
} from '@tollbase/verify/block'
import { FormatError } from '@tollbase/verify/bytes'
import { parseVerifierKey } from '@tollbase/verify/checkpoint'
import type { Database } from '../database/database.ts'
import { type BlockRow, BlockStore, type Watermark } from './block-store.ts'
import type { Head } from './build-block.ts'
import { LeafSet } from './leaf-set.ts'
import { genesis } from './load-chain.ts'
import { type CompletedTile, hashBytes, hashLeaf, MerkleTree, sha256, tileWidth } from './merkle.ts'

export type AuditOptions = {
  readonly origin: string
  /** The service's verifier key. */
  readonly vkey: string
  /**
   * Gives the leaves that an entry, by its bytes, allows to be erased; without it none may be. An erased entry is as
   * certain as the others, since its hash is in the tree.
   */
  readonly listErasable?: ((entry: Uint8Array) => readonly number[]) | undefined
  /** Called with the head after each block. */
  readonly onHead?: ((head: Head) => void) | undefined
  /** Called after each page of blocks. */
  readonly onProgress?: (progress: { readonly height: number; readonly of: number }) => void
}

/** The first place at which the stored chain differs from the recomputed one. */
export type Difference = {
  readonly height: number
  /** Set where the difference is in a single entry. */
  readonly sequence?: number
  readonly what: string
  readonly expected: string
  readonly found: string
}

export type AuditReport =
  | { readonly ok: true; readonly blocks: number; readonly entries: number; readonly head: Head }
  | { readonly ok: false; readonly difference: Difference }

/** Carries the difference out of the walk. */
class Differs extends Error {
  readonly difference: Difference

  constructor(difference: Difference) {
    super(difference.what)
    this.difference = difference
  }
}

const pageBlocksMax = 256
const pageBytesMax = 4 * 1024 * 1024

/**
 * Recomputes the whole chain from its bytes: links, signatures, hashes, tree, tiles, positions, times, and the
 * watermark. Reads page by page and takes no locks; the chain may grow meanwhile.
 */
export async function auditChain(
  database: Database,
  schema: string,
  options: AuditOptions,
): Promise<AuditReport> {
  const store = new BlockStore(database, schema)
  try {
    const watermark = await store.watermark()
    const last = (await store.last())?.height ?? 0
    const audit = new Audit(store, options)
    if (watermark.height === 0) audit.watermark(watermark)
    while (audit.height < last) {
      const from = audit.height + 1
      const range = { from, to: last, blocksMax: pageBlocksMax, bytesMax: pageBytesMax }
      const rows = await store.blocks(range)
      if (rows.length === 0) throw at(from).differs('block', 'a row', 'none')
      for (const row of rows) {
        audit.block(row)
        options.onHead?.(audit.head)
        if (row.height === watermark.height) audit.watermark(watermark)
      }
      await audit.tiles()
      options.onProgress?.({ height: audit.height, of: last })
    }
    if (watermark.height < 0 || watermark.height > last) {
      throw at(last).differs('watermark', `0 to ${last}`, watermark.height)
    }
    await audit.refuseOtherTiles()
    await audit.refuseStrays()
    audit.refuseErased()
    return { ok: true, blocks: audit.height, entries: audit.head.size, head: audit.head }
  } catch (error) {
    if (error instanceof Differs) return { ok: false, difference: error.difference }
    throw error
  }
}

class Audit {
  readonly #store: BlockStore
  readonly #origin: string
  readonly #key: KeyObject
  readonly #tree = new MerkleTree()
  #completed: { readonly height: number; readonly tile: CompletedTile }[] = []
  #head = genesis
  #epoch = 0
  #lastCount = 0
  readonly #listErasable: (entry: Uint8Array) => readonly number[]
  readonly #erased = new LeafSet()
  readonly #erasable = new LeafSet()

  constructor(store: BlockStore, { origin, vkey, listErasable }: AuditOptions) {
    this.#store = store
    this.#origin = origin
    this.#listErasable = listErasable ?? (() => [])
    const x = Buffer.from(parseVerifierKey(vkey).publicKey).toString('base64url')
    this.#key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
  }

  get head(): Head {
    return this.#head
  }

  get height(): number {
    return this.#head.height
  }

  block(row: BlockRow): void {
    const { height, hash: previousHash, time, size } = this.#head
    const { same } = at(height + 1)
    same('height', height + 1, row.height)
    const header = parseHeader(row)
    const signed = verify(null, row.header, this.#key, row.signature)
    same('header signature', 'valid', signed ? 'valid' : 'wrong')
    same('header origin', this.#origin, header.origin)
    same('header height', row.height, header.height)
    same('previous hash', hex(previousHash), hex(header.previousHash))
    if (header.time <= time) throw at(row.height).differs('time', `after ${time}`, header.time)
    if (header.epoch < this.#epoch) {
      throw at(row.height).differs('epoch', `${this.#epoch} or later`, header.epoch)
    }
    same('first_leaf', size, row.firstLeaf)
    same('entry_count', header.entryCount, row.entryCount)
    same('group_starts', hex(header.groupsHash), hashGroups(row.groupStarts))
    const entries = checkEntries(row, header)
    this.#noteErased(entries)
    this.#grow(row, header)
  }

  /** Refuses erased entries that no entry of the chain allows to be erased. */
  refuseErased(): void {
    const leaf = this.#erased.findBeyond(this.#erasable)
    if (leaf !== undefined)
      throw at(this.height).differs(`entry of leaf ${leaf}`, 'its bytes', 'erased')
  }

  #noteErased(entries: readonly (Uint8Array | undefined)[]): void {
    const { size } = this.#head
    entries.forEach((entry, sequence) => {
      if (entry === undefined) this.#erased.add(size + sequence)
      const allowed = entry === undefined ? [] : this.#listErasable(entry)
      for (const leaf of allowed) if (leaf < size + sequence) this.#erasable.add(leaf)
    })
  }

  /** Checks the watermark, which stands at the last audited block. */
  watermark({ sequence, leaf }: Watermark): void {
    const { same } = at(this.height)
    same('watermark sequence', Math.max(this.#lastCount - 1, 0), sequence)
    same('watermark leaf', this.#head.size, leaf)
  }

  /** Compares the tiles that became full since the last call with the stored ones. */
  async tiles(): Promise<void> {
    const completed = this.#completed
    this.#completed = []
    for (let start = 0; start < completed.length; start += tileWidth) {
      const part = completed.slice(start, start + tileWidth)
      const stored = await this.#store.tilesAt(part.map(({ tile }) => tile))
      for (const { height, tile } of part) {
        const what = `tile ${tile.index} of level ${tile.level}`
        const found = stored.find((each) => each.level === tile.level && each.index === tile.index)
        if (found === undefined) throw at(height).differs(what, 'a row', 'none')
        if (!found.hashes.equals(tile.hashes)) {
          throw at(height).differs(what, hex(sha256(tile.hashes)), hex(sha256(found.hashes)))
        }
      }
    }
  }

  /** Refuses tiles beyond those of the whole tree (read after the tiles, since the chain may have grown). */
  async refuseOtherTiles(): Promise<void> {
    const highest = await this.#store.highestTiles()
    const last = await this.#store.last()
    const size = last === undefined ? 0 : last.firstLeaf + last.entryCount
    for (const { level, index } of highest) {
      const count = Math.floor(size / tileWidth ** (level + 1))
      if (index >= count) {
        throw at(this.height).differs(
          `tiles of level ${level}`,
          `${count} tiles`,
          `a tile ${index}`,
        )
      }
    }
  }

  /** Refuses rows before the first number, which the walk never reaches. */
  async refuseStrays(): Promise<void> {
    const stray = await this.#store.findStrayRow()
    if (stray !== undefined) throw at(0).differs(stray, 'none', 'a row')
  }

  #grow(row: BlockRow, header: BlockHeader): void {
    const { height } = row
    this.#tree.append(row.leafHashes)
    const tiles = this.#tree.takeFullTiles()
    this.#completed.push(...tiles.map((tile) => ({ height, tile })))
    const root = this.#tree.root()
    const { size } = this.#tree
    at(height).same('tree size', size, header.treeSize)
    at(height).same('root', hex(root), hex(header.root))
    this.#head = { height, hash: sha256(row.header), time: header.time, size, root }
    this.#epoch = header.epoch
    this.#lastCount = row.entryCount
  }
}

function checkEntries(row: BlockRow, header: BlockHeader): readonly (Uint8Array | undefined)[] {
  const { same, readAs } = at(row.height)
  const entries = readAs('body', () => decodeBlockBody(row.body))
  same('leaf_hashes length', entries.length * hashBytes, row.leafHashes.length)
  entries.forEach((entry, sequence) => {
    if (entry === undefined) return
    const expected = hashLeaf(entry)
    const found = row.leafHashes.subarray(sequence * hashBytes, (sequence + 1) * hashBytes)
    if (expected.equals(found)) return
    const hashes = { expected: hex(expected), found: hex(found) }
    throw new Differs({ height: row.height, sequence, what: 'leaf hash', ...hashes })
  })
  // Where some are erased, the body is another one, and the leaf hashes vouch for what is left.
  if (!entries.includes(undefined)) same('body hash', hex(header.bodyHash), hex(sha256(row.body)))
  same('entries in the body', header.entryCount, entries.length)
  return entries
}

function hashGroups(groupStarts: readonly number[]): string {
  const isSequence = groupStarts.every((start) => start >= 0)
  return isSequence ? hex(sha256(encodeGroupStarts(groupStarts))) : `{${groupStarts.join(',')}}`
}

function parseHeader(row: BlockRow): BlockHeader {
  return at(row.height).readAs('header', () => parseBlockHeader(row.header.toString()))
}

/** The checks of one height. */
function at(height: number) {
  const differs = (what: string, expected: string | number, found: string | number) =>
    new Differs({ height, what, expected: String(expected), found: String(found) })
  return {
    differs,
    same: (what: string, expected: string | number, found: string | number) => {
      if (expected !== found) throw differs(what, expected, found)
    },
    readAs: <T>(what: string, read: () => T): T => {
      try {
        return read()
      } catch (error) {
        if (error instanceof FormatError) throw differs(what, 'its standard form', error.message)
        throw error
      }
    },
  }
}

function hex(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex')
}
