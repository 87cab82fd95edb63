import { encodeBase64 } from '@tollbase/verify/bytes'
import { computeCommitment } from '@tollbase/verify/celestia/commitment'
import { verifyCommitmentProof } from '@tollbase/verify/celestia/commitment-proof'
import { getDataRoot } from '@tollbase/verify/celestia/header'
import { countShares } from '@tollbase/verify/celestia/shares'
import type { Checkpoint } from '@tollbase/verify/checkpoint'
import type { World } from '../base/world.ts'
import { AnswerTooLarge, TransportError } from '../x402/http-json.ts'
import type { BlobJournal, JournaledBlob } from './blob-journal.ts'
import type { Blob, CelestiaBlock, CelestiaNode, Submitted } from './node.ts'
import { NodeError } from './node-errors.ts'

export type BlobSenderOptions = {
  readonly node: CelestiaNode
  /** The id of the chain, as its headers name it. */
  readonly chainId: string
  readonly journal: BlobJournal
  readonly world: World
  /** The highest price of gas that is paid, in utia; the node's own limit when not given. */
  readonly gasPriceMax?: number | undefined
}

/** Something to be sent under an id, with the tree that it tells of. */
export type OutgoingBlob = Blob & { readonly id: string; readonly tree: Checkpoint }

/** The heights that one look goes through, and how many of them at once. */
const heightsAtALook = 128
const heightsAtOnce = 8
/** Nodes drop a transaction after some tens of blocks; one that no block had for so long is lost. */
const lostAfterHeights = 100

/** The reason for which nothing can be sent now, for the operator. */
export class SendProblem extends Error {
  override readonly name = 'SendProblem'
}

/**
 * Sends blobs through a node, each id once as far as anybody can tell: a node signs by itself, so an answer that did not
 * come is looked for in the blocks that followed, by the commitment. A blob that a block has is kept with its proof.
 */
export class BlobSender {
  readonly #options: BlobSenderOptions

  constructor(options: BlobSenderOptions) {
    this.#options = options
  }

  get journal(): BlobJournal {
    return this.#options.journal
  }

  /** Reads the newest block, and refuses a node of another chain. */
  async readHead(): Promise<CelestiaBlock> {
    return this.#requireChain(await this.#options.node.readNetworkHead())
  }

  /**
   * Sends the blob, unless its id was sent before. Throws a SendProblem where it was surely not sent; where that is not
   * known, it returns, and `follow` finds out. `mayLeave` is asked last of all; undefined where it forbids.
   */
  async send(
    { id, tree, namespace, data }: OutgoingBlob,
    mayLeave: () => Promise<boolean> = async () => true,
  ): Promise<JournaledBlob | undefined> {
    const { journal, world } = this.#options
    const known = await journal.find(id)
    if (known !== undefined) return known
    const { height } = await this.readHead()
    const blob: JournaledBlob = {
      id,
      namespace: Buffer.from(namespace),
      commitment: Buffer.from(computeCommitment(namespace, data)),
      bytes: data.length,
      ...{ origin: tree.origin, size: tree.size, root: encodeBase64(tree.root) },
      ...{ state: 'sent', fromHeight: height + 1, searchedHeight: height },
      ...{ height: null, transaction: null, header: null, proof: null },
    }
    await journal.insert(blob)
    world.failpoint?.('celestia.journaled')
    if (!(await this.#isAllowed(id, mayLeave))) return undefined
    const submitted = await this.#submit(blob, { namespace, data })
    world.failpoint?.('celestia.submitted')
    if (submitted === undefined) return blob
    const sent = { ...blob, ...submitted }
    await journal.update(sent)
    return sent
  }

  /** Takes a blob that does not leave out of the journal again. */
  async #isAllowed(id: string, mayLeave: () => Promise<boolean>): Promise<boolean> {
    let isAllowed = false
    try {
      isAllowed = await mayLeave()
    } finally {
      if (!isAllowed) await this.#options.journal.remove(id)
    }
    return isAllowed
  }

  async #submit({ id }: JournaledBlob, blob: Blob): Promise<Submitted | undefined> {
    const { node, journal, gasPriceMax } = this.#options
    try {
      return await node.submit(blob, gasPriceMax)
    } catch (error) {
      if (!isRefusal(error)) {
        if (error instanceof NodeError || error instanceof TransportError) return undefined
        throw error
      }
      await journal.remove(id)
      throw new SendProblem(error.message)
    }
  }

  /** Finds out what became of a blob, up to the newest block; undefined where it was never sent. */
  async follow(id: string, head: CelestiaBlock): Promise<JournaledBlob | undefined> {
    const blob = await this.#options.journal.find(id)
    if (blob?.state !== 'sent') return blob
    const found = blob.height === null ? await this.#search(blob, head.height) : blob
    return found.height === null ? found : this.#place(found, found.height)
  }

  /** Looks for the blob in the blocks that were not looked through yet. */
  async #search(blob: JournaledBlob, headHeight: number): Promise<JournaledBlob> {
    const { journal } = this.#options
    let searchedHeight = blob.searchedHeight
    const last = Math.min(headHeight, searchedHeight + heightsAtALook)
    let height: number | null = null
    while (height === null && searchedHeight < last) {
      const count = Math.min(heightsAtOnce, last - searchedHeight)
      const heights = Array.from({ length: count }, (_, at) => searchedHeight + 1 + at)
      const has = await Promise.all(heights.map((one) => this.#hasBlob(blob, one)))
      height = heights.find((_, at) => has[at]) ?? null
      searchedHeight += count
    }
    const isLost = height === null && searchedHeight - blob.fromHeight + 1 >= lostAfterHeights
    const next = { ...blob, searchedHeight, height, state: isLost ? 'lost' : blob.state } as const
    await journal.update(next)
    return next
  }

  async #hasBlob({ namespace, commitment }: JournaledBlob, height: number): Promise<boolean> {
    const { node } = this.#options
    try {
      const blobs = await node.listBlobs(height, namespace)
      return blobs.some((one) => Buffer.compare(one.commitment, commitment) === 0)
    } catch (error) {
      // A stranger has filled the namespace.
      if (error instanceof AnswerTooLarge) return node.hasBlob({ height, namespace, commitment })
      // Nobody can tell any more; a blob that is sent twice has its effect once.
      if (error instanceof NodeError && error.kind === 'pruned') return false
      throw error
    }
  }

  /** Keeps header and proof of the block that has the blob, once both are checked. */
  async #place(blob: JournaledBlob, height: number): Promise<JournaledBlob> {
    const { node, journal, world } = this.#options
    const { namespace, commitment, bytes } = blob
    try {
      const block = this.#requireChain(await node.readBlock(height))
      const proof = await node.readCommitmentProof({ height, namespace, commitment })
      if (block.height !== height)
        throw new SendProblem(`the node gave block ${block.height} for ${height}`)
      verifyCommitmentProof(proof, {
        ...{ namespace, commitment, shares: countShares(bytes) },
        dataRoot: getDataRoot(block.header),
      })
      const placed: JournaledBlob = {
        ...blob,
        ...{ height, state: 'placed' },
        ...{ header: JSON.stringify(block.header), proof: JSON.stringify(proof) },
      }
      await journal.update(placed)
      world.failpoint?.('celestia.placed')
      return placed
    } catch (error) {
      if (!(error instanceof NodeError)) throw error
      if (error.kind === 'pruned') return this.#giveUp(blob)
      if (error.kind !== 'missing') throw error
      // The block that the node named does not have it: another one may.
      const searchedHeight = blob.fromHeight - 1
      const again = { ...blob, height: null, transaction: null, searchedHeight }
      await journal.update(again)
      return again
    }
  }

  /** Gives a blob up whose proof cannot be had any more: it is sent again, with a proof then. */
  async #giveUp(blob: JournaledBlob): Promise<JournaledBlob> {
    const lost = { ...blob, state: 'lost' } as const
    await this.#options.journal.update(lost)
    return lost
  }

  #requireChain(block: CelestiaBlock): CelestiaBlock {
    const { chainId } = this.#options
    if (block.header.chain_id !== chainId)
      throw new SendProblem(`the node serves chain ${block.header.chain_id}, not ${chainId}`)
    return block
  }
}

/** True where the node, or the network before it, surely did not take the blob. */
function isRefusal(error: unknown): error is Error {
  if (error instanceof NodeError) return error.kind === 'refused'
  return (
    error instanceof TransportError &&
    (error.unsent || /status (401|403|413|429)/.test(error.message))
  )
}
