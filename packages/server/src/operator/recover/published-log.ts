import {
  type BlockHeader,
  encodeGroupStarts,
  hashBlock,
  noBlockHash,
  parseBlockHeader,
  verifyBlockSignature,
} from '@tollbase/verify/block'
import { FormatError } from '@tollbase/verify/bytes'
import type { VerifierKey } from '@tollbase/verify/checkpoint'
import type { PublishedBlock } from '@tollbase/verify/publication'
import { hashLeaf, MerkleTree, sha256 } from '../../chain/merkle.ts'

/** A block that was found to be the next one of its log. */
export type CheckedBlock = PublishedBlock & {
  readonly height: number
  readonly firstLeaf: number
  /** Milliseconds since 1970. */
  readonly time: number
  /** The leaf hash of each entry. */
  readonly leafHashes: readonly Buffer[]
}

/** Thrown where a log has two blocks of one height, both signed with its key: it was rewritten. */
export class TwoHistories extends Error {
  override readonly name = 'TwoHistories'
}

/** A block of which entries are missing, without those that are there: a log may have many that never come. */
type LackingBlock = {
  readonly firstLeaf: number
  /** The leaf hashes of all entries, one after the other. */
  readonly hashes: Buffer
  /** 1 for each entry that is missing. */
  readonly missing: Uint8Array
}

const hashBytes = 32

/** A log that is built up of published blocks, each of which is checked: key, order, hashes and the tree's root. */
export class PublishedLog {
  readonly #key: VerifierKey
  readonly #tree = new MerkleTree()
  /** The hashes of the headers, by height; those below the first are of none. */
  readonly #hashes: Uint8Array[] = [noBlockHash]
  #root: Uint8Array | undefined
  /** The blocks of which entries are missing, by height. */
  readonly #lacking = new Map<number, LackingBlock>()

  constructor(key: VerifierKey) {
    this.#key = key
  }

  /** The newest block's height; 0 before the first. */
  get height(): number {
    return this.#hashes.length - 1
  }

  get size(): number {
    return this.#tree.size
  }

  /** The entries of which only the hash was sent. */
  get hidden(): number {
    let sum = 0
    for (const { missing } of this.#lacking.values()) for (const one of missing) sum += one
    return sum
  }

  /** The root of the tree at the end of the newest block. */
  get root(): Uint8Array | undefined {
    return this.#root
  }

  /**
   * Adds a block; undefined where it is there already, or is not the next one. One that is there is given again where
   * it has entries that were missing: anybody can send a block first, with hashes in place of its entries. Throws a
   * FormatError where the block is none of this log, and TwoHistories where it contradicts what is there.
   */
  add(block: PublishedBlock): CheckedBlock | undefined {
    const header = parseBlockHeader(block.header)
    const { height } = header
    if (header.origin !== this.#key.name)
      throw new FormatError(`a block is of ${header.origin}, not of ${this.#key.name}`)
    if (!verifyBlockSignature(block.header, block.signature, this.#key.publicKey))
      throw new FormatError(`the signature of block ${height} is wrong`)
    const hash = hashBlock(block.header)
    const known = this.#hashes[height]
    if (known !== undefined) {
      if (Buffer.compare(known, hash) !== 0)
        throw new TwoHistories(`two blocks of height ${height} are signed: the log was rewritten`)
      return this.#addMissing(block, header)
    }
    if (height !== this.height + 1) return undefined
    if (Buffer.compare(header.previousHash, this.#hashes[height - 1] ?? noBlockHash) !== 0)
      throw new TwoHistories(`block ${height} does not follow the signed block before it`)
    const checked = this.#check(block, header)
    this.#hashes.push(hash)
    this.#root = header.root
    const missing = Uint8Array.from(block.entries, (entry) => (entry === undefined ? 1 : 0))
    const { firstLeaf, leafHashes } = checked
    if (missing.includes(1))
      this.#lacking.set(height, { firstLeaf, hashes: Buffer.concat(leafHashes), missing })
    return checked
  }

  /** Returns true for a block of this log that comes after others which are not there yet. */
  isAhead({ header, signature }: PublishedBlock): boolean {
    try {
      const { origin, height } = parseBlockHeader(header)
      const isNew = origin === this.#key.name && height > this.height + 1
      return isNew && verifyBlockSignature(header, signature, this.#key.publicKey)
    } catch (error) {
      if (error instanceof FormatError) return false
      throw error
    }
  }

  #addMissing(block: PublishedBlock, { height, time, groupsHash }: BlockHeader) {
    const lacking = this.#lacking.get(height)
    if (lacking === undefined) return undefined
    const { missing, hashes, firstLeaf } = lacking
    const { entries, groupStarts } = block
    const leafHashes = Array.from(missing, (_, at) =>
      hashes.subarray(at * hashBytes, (at + 1) * hashBytes),
    )
    const isRight = entries.every(
      (entry, at) => entry === undefined || leafHashes[at]?.equals(hashLeaf(entry)) === true,
    )
    if (!isRight || entries.length !== leafHashes.length) throw makeRefusal(height, 'the entries')
    if (!sha256(encodeGroupStarts(groupStarts)).equals(groupsHash))
      throw makeRefusal(height, 'the groups')
    const isNew = entries.some((entry, at) => entry !== undefined && missing[at] === 1)
    if (!isNew) return undefined
    for (const [at, entry] of entries.entries()) if (entry !== undefined) missing[at] = 0
    if (!missing.includes(1)) this.#lacking.delete(height)
    return { ...block, height, time, firstLeaf, leafHashes }
  }

  #check(block: PublishedBlock, header: BlockHeader): CheckedBlock {
    const { height, time, entryCount, treeSize, root, groupsHash } = header
    const refuse = (what: string): never => {
      throw makeRefusal(height, what)
    }
    const { entries, groupStarts } = block
    if (entries.length !== entryCount || this.size + entryCount !== treeSize) refuse('the entries')
    if (!sha256(encodeGroupStarts(groupStarts)).equals(groupsHash)) refuse('the groups')
    const hidden = [...block.hidden]
    const leafHashes = entries.map((entry) =>
      entry === undefined ? Buffer.from(hidden.shift() ?? []) : hashLeaf(entry),
    )
    const mark = this.#tree.mark()
    const firstLeaf = this.size
    this.#tree.append(Buffer.concat(leafHashes))
    if (this.size !== treeSize || !this.#tree.root().equals(root)) {
      this.#tree.rollBack(mark)
      refuse('the hashes')
    }
    return { ...block, height, firstLeaf, time, leafHashes }
  }
}

function makeRefusal(height: number, what: string): FormatError {
  return new FormatError(`${what} of block ${height} are not what its header says`)
}
