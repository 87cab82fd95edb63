import type { Entry } from '@tollbase/verify/entry'
import { awaitTurn } from '../base/await-turn.ts'
import type { Queryable } from '../database/database.ts'
import type { BlockRow, Watermark } from './block-store.ts'
import { parseBlock } from './parse-block.ts'

/** An entry in its place on the chain. */
export type AppliedEntry = Entry & {
  readonly height: number
  /** Place within the block, from 0. */
  readonly sequence: number
  readonly leafIndex: number
  /** Time of the block, milliseconds since 1970. */
  readonly time: number
}

export type AppliedBlock = {
  readonly height: number
  /** Milliseconds since 1970. */
  readonly time: number
  readonly firstLeaf: number
  /** Sequences at which the groups start; a group is what one append call brought. */
  readonly groupStarts: readonly number[]
  /** Entries in the block, erased ones too. */
  readonly entryCount: number
  /** Those that were not erased. */
  readonly entries: readonly AppliedEntry[]
}

/** Turns entries into tables. */
export type Applier = {
  /**
   * Applies whole blocks, in height order, within `tx`. In-memory state may change only in the returned function,
   * which runs right after the commit. May be called again with the same blocks where the transaction failed. A
   * call without blocks lets the dependents catch up. Replays of the log have no step and no dependents.
   */
  readonly apply: (
    tx: Queryable,
    blocks: readonly AppliedBlock[],
    step?: Step,
  ) => Promise<(() => void) | undefined>
  /**
   * The time, in the world's ticks, by which the dependents (which may be behind the tables for a moment) must
   * catch up; undefined where nothing is behind.
   */
  readonly catchUpAt?: () => number | undefined
}

/** One transaction of an applier loop. */
export type Step = {
  /** Position of the tables at its end. */
  readonly at: Watermark
  /** True where the dependents must catch up too, whatever time it is. */
  readonly catchUp: boolean
}

type Positioned = {
  readonly height: number
  readonly time: number
  readonly firstLeaf: number
  readonly groupStarts: readonly number[]
  readonly entries: readonly (Entry | undefined)[]
}

/** Converts a block to the form that appliers get. */
export function toAppliedBlock({
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
    entryCount: entries.length,
    entries: entries.flatMap((entry, sequence) => {
      if (entry === undefined) return []
      const { header, body } = entry
      return [{ height, sequence, leafIndex: firstLeaf + sequence, time, header, body }]
    }),
  }
}

/** Entries that are decoded without a pause. */
const entriesAtOnce = 128

/** A block of the log as appliers get it; others have their turns while it is decoded. Throws where it is damaged. */
export async function openToApply(row: BlockRow): Promise<AppliedBlock> {
  const block = parseBlock(row)
  const { height, time, firstLeaf, groupStarts } = block
  const entries: (Entry | undefined)[] = []
  for (let at = 0; at < row.entryCount; at++) {
    if (at > 0 && at % entriesAtOnce === 0) await awaitTurn()
    entries.push(block.entry(at))
  }
  return toAppliedBlock({ height, time, firstLeaf, groupStarts, entries })
}

/** Computes where the tables stand once the blocks are applied; undefined without blocks. */
export function computeWatermark(blocks: readonly AppliedBlock[]): Watermark | undefined {
  const last = blocks[blocks.length - 1]
  if (last === undefined) return undefined
  const { height, firstLeaf, entryCount } = last
  return { height, sequence: entryCount - 1, leaf: firstLeaf + entryCount }
}
