import { encodeBase64 } from '@tollbase/verify/bytes'
import { anchorsApp } from '@tollbase/verify/celestia/celestia-anchor'
import { deriveNamespace } from '@tollbase/verify/celestia/namespace'
import { type Checkpoint, formatCheckpoint } from '@tollbase/verify/checkpoint'
import type { World } from '../base/world.ts'
import type { JournaledBlob } from '../celestia/blob-journal.ts'
import type { BlobSender } from '../celestia/blob-sender.ts'
import { describePlaced } from '../celestia/placed-blob.ts'
import type {
  AnchorChain,
  AnchorState,
  CelestiaAnchor,
  OuterPlace,
  SentAnchor,
  Tree,
} from './anchor-chain.ts'
import { type NoteKey, signNote } from './sign-note.ts'

export type CelestiaAnchorsOptions = {
  /** CAIP-2. */
  readonly network: string
  readonly sender: BlobSender
  /** The name of the service's own log. */
  readonly origin: string
  readonly key: NoteKey
  readonly world: World
  /** Ends all calls to the node. */
  readonly interrupt: () => void
}

/** Anchors that are looked at. */
const listedMax = 64

/** Anchors checkpoints on Celestia: each is a blob that holds the signed note. */
export class CelestiaAnchors implements AnchorChain {
  readonly #options: CelestiaAnchorsOptions
  readonly #namespace = deriveNamespace(anchorsApp)

  constructor(options: CelestiaAnchorsOptions) {
    this.#options = options
  }

  get network(): string {
    return this.#options.network
  }

  get place(): OuterPlace {
    return { namespace: encodeBase64(this.#namespace) }
  }

  async start(): Promise<void> {
    // A node is asked call by call.
  }

  interrupt(): void {
    this.#options.interrupt()
  }

  async stop(): Promise<void> {
    // Nothing goes on between two calls.
  }

  async list(): Promise<SentAnchor[]> {
    const { sender, origin } = this.#options
    const blobs = await sender.journal.listNewest(origin, { prefix: 'anchor:', limit: listedMax })
    return blobs.map((blob) => ({
      id: blob.id,
      names: [blob.commitment.toString('base64')],
      isAlive: blob.state !== 'lost',
      ...getTree(blob),
    }))
  }

  async send(checkpoint: Checkpoint): Promise<boolean> {
    const { sender, world } = this.#options
    const data = Buffer.from(this.#makeNote(checkpoint))
    const id = `anchor:${this.network}:${checkpoint.size}:${world.randomBytes(8).toString('hex')}`
    await sender.send({ id, tree: checkpoint, namespace: this.#namespace, data })
    return true
  }

  async readHeight(): Promise<number> {
    return (await this.#options.sender.readHead()).height
  }

  async readStates(sent: readonly SentAnchor[]): Promise<AnchorState[]> {
    const { head, blobs } = await this.#options.sender.followAll(sent.map(({ id }) => id))
    const states: AnchorState[] = []
    for (const blob of blobs) {
      const anchor = blob && this.#describe(blob)
      if (blob === undefined || blob.state === 'lost') states.push({ state: 'failed' })
      else if (anchor === undefined) states.push({ state: 'waiting' })
      else states.push({ state: 'confirmed', anchor, depth: head.height - anchor.block_number + 1 })
    }
    return states
  }

  #describe(blob: JournaledBlob): CelestiaAnchor | undefined {
    const placed = describePlaced(blob)
    if (placed === undefined) return undefined
    const { origin, size, root, namespace, commitment, transaction } = blob
    const { height, hash, time, header, proof } = placed
    return {
      network: this.network,
      namespace: namespace.toString('base64'),
      commitment: commitment.toString('base64'),
      transaction,
      note: this.#makeNote({ origin, ...getTree(blob) }),
      ...{ header, proof },
      ...{ block_number: height, block_hash: hash, time },
      ...{ size, root },
    }
  }

  /** The signature is the same each time, and so are the bytes. */
  #makeNote(checkpoint: Checkpoint): string {
    return signNote(this.#options.key, checkpoint.origin, formatCheckpoint(checkpoint))
  }
}

function getTree({ size, root }: JournaledBlob): Tree {
  return { size, root: new Uint8Array(Buffer.from(root, 'base64')) }
}
