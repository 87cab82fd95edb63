import type { CommittedBlock } from './held-blocks.ts'

/** Commits closer together than this share one mark. */
const markMs = 250

/**
 * The times of blocks that are not applied yet, one for each stretch of time, oldest first: they tell how far the
 * tables are behind.
 */
export class LagMarks {
  #marks: { readonly height: number; readonly time: number }[] = []

  /** The time of the oldest block, milliseconds since 1970, a little early; undefined where none waits. */
  get oldestTime(): number | undefined {
    return this.#marks[0]?.time
  }

  add({ height, time }: Pick<CommittedBlock, 'height' | 'time'>): void {
    const last = this.#marks.at(-1)
    if (last === undefined || time - last.time >= markMs) this.#marks.push({ height, time })
  }

  /**
   * Drops marks but keeps the one at or before the oldest waiting block, which was committed at its time or a
   * little later. `isAll` says that no block waits any more.
   */
  forget(applied: number, { isAll }: { readonly isAll: boolean }): void {
    if (isAll) this.#marks = []
    const next = this.#marks.findIndex(({ height }) => height > applied + 1)
    const stay = next < 0 ? this.#marks.length - 1 : next - 1
    if (stay > 0) this.#marks.splice(0, stay)
  }
}
