import { encodeBase64, FormatError } from '@tollbase/verify/bytes'
import { computeCommitment } from '@tollbase/verify/celestia/commitment'
import { verifyCommitmentProof } from '@tollbase/verify/celestia/commitment-proof'
import { getDataRoot } from '@tollbase/verify/celestia/header'
import { countShares } from '@tollbase/verify/celestia/shares'
import type { Checkpoint } from '@tollbase/verify/checkpoint'
import type { Log } from '../base/log.ts'
import type { World } from '../base/world.ts'
import { TransportError } from '../x402/http-json.ts'
import type { BlobJournal, JournaledBlob } from './blob-journal.ts'
import type { Blob, CelestiaBlock, CelestiaNode, Submitted } from './node.ts'
import { NodeError } from './node-errors.ts'
import { Refusals } from './refusals.ts'
import { UnjudgedBlobs } from './unjudged-blobs.ts'

export type BlobSenderOptions = {
  readonly node: CelestiaNode
  /** The id of the chain, as its headers name it. */
  readonly chainId: string
  readonly journal: BlobJournal
  readonly world: World
  readonly log: Pick<Log, 'warn'>
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
/** A height that is so far above the newest block was a wrong answer. */
const aheadMax = 100
/** Blobs about which the node gave no answer at all, after which it is asked about no more for this time. */
const unansweredMax = 2

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
  readonly #refusals = new Refusals()
  readonly #unjudged = new UnjudgedBlobs()

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
   * Sends the blob, unless its id was sent before. Throws a SendProblem where it was not sent; where that is not known, it
   * returns, and `followAll` finds out. `mayLeave` is asked last of all; undefined where it forbids.
   */
  async send(
    { id, tree, namespace, data }: OutgoingBlob,
    mayLeave: () => Promise<boolean> = async () => true,
  ): Promise<JournaledBlob | undefined> {
    const { journal, world } = this.#options
    const known = await journal.find(id)
    if (known !== undefined) return known
    const problem = this.#refusals.check(world.now())
    if (problem !== undefined) throw new SendProblem(problem)
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
    const { node, chainId, journal, gasPriceMax, log, world } = this.#options
    try {
      const submitted = await node.submit(blob, gasPriceMax)
      this.#refusals.end()
      return submitted
    } catch (error) {
      if (!(error instanceof NodeError || error instanceof TransportError)) throw error
      const isAway = error instanceof TransportError && error.unsent
      if (!isAway && !this.#isRefusal(error)) {
        const fields = { chainId, id, error: error.message }
        log.warn(fields, 'a node does not say whether it has sent a blob, which is looked for')
        return undefined
      }
      await journal.remove(id)
      if (!isAway) this.#refusals.note(world.now(), error.message)
      throw new SendProblem(error.message)
    }
  }

  /** True where the blob counts as not sent. A gateway can answer with any other status after it passed the call on. */
  #isRefusal(error: NodeError | TransportError): boolean {
    if (error instanceof TransportError) return /^status 401\b/.test(error.message)
    if (error.kind !== 'rejected') return error.kind === 'refused'
    return this.#refusals.takeBelief(this.#options.world.now())
  }

  /**
   * Finds out what became of blobs, up to the newest block: undefined for one that was never sent. One that the answers
   * of the node do not let us judge stays as it is, and holds up no other one.
   */
  async followAll(ids: readonly string[]): Promise<{
    readonly head: CelestiaBlock
    readonly blobs: readonly (JournaledBlob | undefined)[]
  }> {
    const { journal, world } = this.#options
    const head = await this.readHead()
    this.#unjudged.filter(ids)
    const blobs: (JournaledBlob | undefined)[] = []
    let unanswered = 0
    // One after the other: each may look through a hundred blocks.
    for (const id of ids) {
      const isHeld = unanswered >= unansweredMax || this.#unjudged.isResting(id, world.now())
      if (!isHeld && (await this.#attemptFollow(id, head)) === 'unanswered') unanswered += 1
      blobs.push(await journal.find(id))
    }
    return { head, blobs }
  }

  async #attemptFollow(
    id: string,
    head: CelestiaBlock,
  ): Promise<'judged' | 'unjudged' | 'unanswered'> {
    const { chainId, log, world } = this.#options
    try {
      await this.follow(id, head)
      this.#unjudged.remove(id)
      return 'judged'
    } catch (error) {
      if (!isOfNode(error)) throw error
      const { message } = error
      if (this.#unjudged.note(id, message, world.now()))
        log.warn({ chainId, id, error: message }, 'a blob cannot be judged now')
      const isAnswer = !(error instanceof TransportError) || error.cause instanceof FormatError
      return isAnswer ? 'unjudged' : 'unanswered'
    }
  }

  /** Finds out what became of a blob; throws where the answers of the node do not tell. */
  async follow(id: string, head: CelestiaBlock): Promise<JournaledBlob | undefined> {
    const known = await this.#options.journal.find(id)
    if (known?.state !== 'sent') return known
    const blob = await this.#normalizeHeights(known, head.height)
    const found = blob.height === null ? await this.#search(blob, head.height) : blob
    return found.height === null ? found : this.#place(found, found.height)
  }

  /**
   * Takes heights that no block can have for not stated. Where the newest block was none when the blob was sent, the
   * search begins anew, a little below the newest one of now: nobody knows any more when the blob was sent.
   */
  async #normalizeHeights(blob: JournaledBlob, headHeight: number): Promise<JournaledBlob> {
    const { height, fromHeight } = blob
    const most = headHeight + aheadMax
    const isHeight = height === null || (height >= 1 && height <= most)
    if (isHeight && fromHeight <= most) return blob
    const next: JournaledBlob = {
      ...blob,
      ...(!isHeight && { height: null, transaction: null }),
      ...(fromHeight > most && {
        fromHeight: headHeight + 1,
        searchedHeight: Math.max(0, headHeight - heightsAtALook),
      }),
    }
    await this.#options.journal.update(next)
    return next
  }

  /** Looks for the blob in the blocks that were not looked through yet. */
  async #search(blob: JournaledBlob, headHeight: number): Promise<JournaledBlob> {
    const { journal } = this.#options
    let searchedHeight = blob.searchedHeight
    const last = Math.min(headHeight, searchedHeight + heightsAtALook)
    let height: number | null = null
    let problem: unknown
    while (height === null && problem === undefined && searchedHeight < last) {
      const count = Math.min(heightsAtOnce, last - searchedHeight)
      const heights = Array.from({ length: count }, (_, at) => searchedHeight + 1 + at)
      try {
        const has = await Promise.all(heights.map((one) => this.#hasBlob(blob, one)))
        height = heights.find((_, at) => has[at]) ?? null
        searchedHeight += count
      } catch (error) {
        // The blocks before it are not looked through again.
        problem = error
      }
    }
    // A node that was behind when the blob was sent has named too low a height: the last block decides.
    const isThrough = height === null && searchedHeight >= headHeight
    const isLost = isThrough && searchedHeight - blob.fromHeight + 1 >= lostAfterHeights
    const next = { ...blob, searchedHeight, height, state: isLost ? 'lost' : blob.state } as const
    await journal.update(next)
    if (problem !== undefined) throw problem
    return next
  }

  /** Asks for the proof, whose size is that of our blob: whoever likes can fill the namespace, and so a list of it. */
  async #hasBlob({ namespace, commitment }: JournaledBlob, height: number): Promise<boolean> {
    try {
      return await this.#options.node.hasBlob({ height, namespace, commitment })
    } catch (error) {
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
      const isBefore = height < blob.fromHeight
      if (error.kind === 'pruned' && !isBefore) return this.#giveUp(blob)
      if (error.kind !== 'missing' && error.kind !== 'pruned') throw error
      // The block that the node named does not have it, or came before it was sent: another one may.
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

/** True for what a node caused, as against trouble of our own, such as with the database. */
function isOfNode(error: unknown): error is Error {
  return [NodeError, TransportError, SendProblem, FormatError].some((kind) => error instanceof kind)
}
