import type { Entry } from '@tollbase/verify/entry'
import type { Queryable } from '../database/database.ts'
import type { Watermark } from './block-store.ts'

/** An entry in its place on the chain. */
export type AppliedEntry = Entry & {
  readonly height: number
  /** Place within the block, from 0. */
  readonly sequence: number
  readonly leafIndex: number
  /** Of the block, milliseconds since 1970. */
  readonly time: number
}

export type AppliedBlock = {
  readonly height: number
  /** Milliseconds since 1970. */
  readonly time: number
  readonly firstLeaf: number
  /** Sequences at which the groups start; a group is what one append call brought. */
  readonly groupStarts: readonly number[]
  readonly entries: readonly AppliedEntry[]
}

/** Turns entries into tables. */
export type Applier = {
  /**
   * Applies whole blocks, in height order, within `tx`; in-memory state may change only in the returned function,
   * which runs right after the commit. May be called again with the same blocks where the transaction failed. Without
   * blocks it is called to catch up. Replays of the log have no step, and nothing that follows the tables.
   */
  readonly apply: (
    tx: Queryable,
    blocks: readonly AppliedBlock[],
    step?: Step,
  ) => Promise<(() => void) | undefined>
  /**
   * By when what follows the tables, and may be behind them for a moment, is to catch up, in the world's ticks;
   * undefined where nothing is behind.
   */
  readonly catchUpAt?: () => number | undefined
}

/** One transaction of a lane. */
export type Step = {
  /** Where the tables are at its end. */
  readonly at: Watermark
  /** Whether what follows the tables is to be there too, whatever time it is. */
  readonly catchUp: boolean
}

type Positioned = {
  readonly height: number
  readonly time: number
  readonly firstLeaf: number
  readonly groupStarts: readonly number[]
  readonly entries: readonly Entry[]
}

/** A block as appliers get it. */
export function appliedBlock({
  height,
  time,
  firstLeaf,
  groupStarts,
  entries,
}: Positioned): AppliedBlock {
  return {
    height,
    time,
    firstLeaf,
    groupStarts,
    entries: entries.map(({ header, body }, sequence) => ({
      height,
      sequence,
      leafIndex: firstLeaf + sequence,
      time,
      header,
      body,
    })),
  }
}
