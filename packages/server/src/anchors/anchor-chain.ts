import type { CommitmentProof } from '@tollbase/verify/celestia/commitment-proof'
import type { CelestiaHeader } from '@tollbase/verify/celestia/header'
import type { Checkpoint } from '@tollbase/verify/checkpoint'

type AnchorFacts = {
  /** CAIP-2. */
  readonly network: string
  readonly block_number: number
  readonly block_hash: string
  /** The block's time, ISO 8601. */
  readonly time: string
  readonly size: number
  /** Base64. */
  readonly root: string
}

/** A transaction that calls contracts/Anchors.sol. */
export type EvmAnchor = AnchorFacts & {
  readonly contract: string
  readonly signer: string
  readonly transaction: string
  /** 0x hex. */
  readonly raw: string
  readonly gas_used: number
}

/** A blob that holds the note of a checkpoint. */
export type CelestiaAnchor = AnchorFacts & {
  /** Base64, as a node takes them. */
  readonly namespace: string
  readonly commitment: string
  /** The hash of the transaction; null where the node did not tell it. */
  readonly transaction: string | null
  /** The note. */
  readonly note: string
  readonly header: CelestiaHeader
  readonly proof: CommitmentProof
}

/** A confirmed anchor, as its entry in the service's own log tells it. */
export type Anchor = EvmAnchor | CelestiaAnchor

/** Returns true for an anchor on Celestia. */
export function isCelestiaAnchor(anchor: Anchor): anchor is CelestiaAnchor {
  return 'commitment' in anchor
}

/** Returns what tells an anchor from all others of its network. */
export function getAnchorName(
  anchor: Pick<CelestiaAnchor, 'commitment'> | Pick<EvmAnchor, 'transaction'>,
): string {
  return 'commitment' in anchor ? anchor.commitment : anchor.transaction
}

/** The tree of a checkpoint. */
export type Tree = Pick<Checkpoint, 'size' | 'root'>

/** An anchor of ours as it was sent. */
export type SentAnchor = {
  readonly id: string
  /** The names (see `getAnchorName`) that it can have once it is confirmed. */
  readonly names: readonly string[]
  /** False where it can never get into a block. */
  readonly isAlive: boolean
} & Tree

/** The state of a sent anchor on its chain. */
export type AnchorState =
  | { readonly state: 'waiting' }
  /** It is in a block that may still be replaced. */
  | { readonly state: 'unconfirmed' }
  /** It is in a block, and without effect, or will be in none. */
  | { readonly state: 'failed' }
  | { readonly state: 'confirmed'; readonly anchor: Anchor; readonly depth: number }

/** Names of what is used on another chain, for everybody to look it up. */
export type OuterPlace = {
  /** Address of contracts/Anchors.sol. */
  readonly contract?: string
  readonly signer?: string
  /** Base64; of anchors on Celestia. */
  readonly namespace?: string
}

/** A chain that checkpoints are anchored on: the port of the anchoring service. */
export type AnchorChain = {
  /** CAIP-2. */
  readonly network: string
  readonly place: OuterPlace
  /** Begins to work; nothing else is called before. Throws where that is not possible now. */
  readonly start: () => Promise<void>
  /** Makes all calls fail from now on, so that a node that does not answer holds up nothing. */
  readonly interrupt: () => void
  /** Ends once no call is under way any more. */
  readonly stop: () => Promise<void>
  /** Lists the newest anchors that were sent, the newest first; an anchor that is listed may be in no block. */
  readonly list: () => Promise<SentAnchor[]>
  /**
   * Sends an anchor of the checkpoint. Returns false where something else must be sent first. If it throws, the anchor may
   * be sent or not: `list` knows.
   */
  readonly send: (checkpoint: Checkpoint) => Promise<boolean>
  /** Reads the height of the newest block. */
  readonly readHeight: () => Promise<number>
  /** Reads what became of anchors; `origin` is that of their checkpoints. */
  readonly readStates: (sent: readonly SentAnchor[], origin: string) => Promise<AnchorState[]>
}
