import {
  chunkBlobOverheadBytes,
  encodeChunkBlob,
  formatChunkNote,
} from '@tollbase/verify/celestia/chunk-blob'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import type { JournaledBlob } from '../celestia/blob-journal.ts'
import type { BlobSender } from '../celestia/blob-sender.ts'
import { describePlaced } from '../celestia/placed-blob.ts'
import type { MayLeave } from '../x402/sender.ts'
import type { OuterPlace } from './anchor-chain.ts'
import type { Named, PublishingChain, Sending, Sent, SentState } from './publishing-chain.ts'
import { type NoteKey, signNote } from './sign-note.ts'

export type CelestiaPublishingChainOptions = {
  /** CAIP-2. */
  readonly network: string
  readonly sender: BlobSender
  readonly key: NoteKey
  /** Ends all calls to the node. */
  readonly interrupt: () => void
}

/** Transactions have at most 8 MiB, and nodes of before 2025 took a quarter; one larger blob costs no less than two. */
const blobBytesMax = 1_000_000
/** An account has one transaction in each block, and each call waits for its block. */
const onTheirWayMax = 4

/** Publishes bytes as blobs on Celestia, in the namespace of the application. */
export class CelestiaPublishingChain implements PublishingChain {
  readonly chunkBytesMax: number = blobBytesMax - chunkBlobOverheadBytes
  readonly onTheirWayMax: number = onTheirWayMax
  readonly place: OuterPlace = {}
  readonly #options: CelestiaPublishingChainOptions
  #mayLeave: MayLeave = async () => false

  constructor(options: CelestiaPublishingChainOptions) {
    this.#options = options
  }

  get network(): string {
    return this.#options.network
  }

  async start(mayLeave: MayLeave): Promise<void> {
    this.#mayLeave = mayLeave
  }

  interrupt(): void {
    this.#options.interrupt()
  }

  async stop(): Promise<void> {
    // Nothing goes on between two calls.
  }

  async send({ id, tree }: Sending, chunk: Uint8Array): Promise<string | undefined> {
    const { sender, key } = this.#options
    const app = tree.origin.slice(tree.origin.lastIndexOf('/') + 1)
    const note = signNote(key, tree.origin, formatChunkNote(tree, chunk))
    const data = encodeChunkBlob(note, chunk)
    const sent = await sender.send({ id, tree, namespace: deriveNamespace(app), data }, () =>
      this.#mayLeave(id),
    )
    return sent && getName(sent)
  }

  async readStates(sent: readonly Sent[]): Promise<SentState[]> {
    const { blobs } = await this.#options.sender.followAll(sent.map(({ id }) => id))
    const states: SentState[] = []
    for (const blob of blobs) {
      const placed = blob && describePlaced(blob)
      if (blob === undefined || blob.state === 'lost') states.push({ state: 'failed' })
      else if (placed === undefined) states.push({ state: 'waiting' })
      else {
        const { height: blockNumber, hash: blockHash } = placed
        const transaction = getName(blob)
        // A block that is made is final.
        states.push({ state: 'confirmed', transaction, blockNumber, blockHash, isFinal: true })
      }
    }
    return states
  }

  async list(idStart: string): Promise<readonly Named[]> {
    const blobs = await this.#options.sender.journal.listSent(idStart)
    return blobs.map((blob) => ({ id: blob.id, transaction: getName(blob) }))
  }

  async forget(): Promise<void> {
    // The journal is where the proof stays, which nodes forget.
  }
}

/** The hash of the transaction is not known to each node. */
function getName({ transaction, commitment }: JournaledBlob): string {
  return transaction ?? commitment.toString('base64')
}
