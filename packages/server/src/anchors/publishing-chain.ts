import type { Checkpoint } from '@tollbase/verify/checkpoint'
import type { MayLeave } from '../x402/sender.ts'
import type { OuterPlace } from './anchor-chain.ts'

/** Bytes on their way to another chain. */
export type Sending = {
  /** Sent once: what has this id already is only sent again. */
  readonly id: string
  /** The tree of the log up to the last published block. */
  readonly tree: Checkpoint
}

/** Something that was sent. */
export type Sent = Sending & { readonly transaction: string }

/** The name of something that was sent, or may have been, and that of its transaction. */
export type Named = { readonly id: string; readonly transaction: string }

/** The state of something sent on its chain. */
export type SentState =
  | { readonly state: 'waiting' }
  /** It is in a block that may still be replaced. */
  | { readonly state: 'unconfirmed' }
  /** It has no effect, and never will. */
  | { readonly state: 'failed' }
  /** The same, as it was not to be sent any more when it was asked for. */
  | { readonly state: 'withdrawn' }
  | {
      readonly state: 'confirmed'
      /** Another one than was sent first, where that was replaced. */
      readonly transaction: string
      readonly blockNumber: number
      readonly blockHash: string
      /** Nobody replaces its block any more, so nobody looks whether it is still there. */
      readonly isFinal: boolean
    }

/** A chain that data is published on: the port of the publishing service. */
export type PublishingChain = {
  /** CAIP-2. */
  readonly network: string
  readonly place: OuterPlace
  /** Bytes of the largest chunk that one transaction holds. */
  readonly chunkBytesMax: number
  /** The most that is on its way at once. */
  readonly onTheirWayMax: number
  /**
   * Begins to work; only `list` and `forget` are called before. Throws where that is not possible now. `mayLeave` is asked
   * before each time that bytes leave, also of what an earlier run has signed.
   */
  readonly start: (mayLeave: MayLeave) => Promise<void>
  /** Makes all calls fail from now on, so that a node that does not answer holds up nothing. */
  readonly interrupt: () => void
  /** Ends once no call is under way any more. */
  readonly stop: () => Promise<void>
  /**
   * Sends a chunk, and returns the name of its transaction; undefined where it may not leave, or something else must be
   * sent first. If it throws, the chunk may be sent or not: the same call with the same id is right in both cases.
   */
  readonly send: (sending: Sending, chunk: Uint8Array) => Promise<string | undefined>
  readonly readStates: (sent: readonly Sent[]) => Promise<SentState[]>
  /** Lists what was sent under ids that begin so, and has to be followed or forgotten yet. */
  readonly list: (idStart: string) => Promise<readonly Named[]>
  /** Forgets all that was sent under ids that begin so, with effect or without: what they stand for is final. */
  readonly forget: (idStarts: readonly string[]) => Promise<void>
}
