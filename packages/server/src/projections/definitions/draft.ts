import type { Draft } from '../../model/catalog.ts'

/** Notes that a number is taken. */
export function noteNumber(draft: Draft, { number }: { readonly number: number }): void {
  draft.nextNumber = Math.max(draft.nextNumber, number + 1)
}

/** Removes the indexes of a collection or view that is gone. */
export function removeIndexes({ indexes }: Draft, readable: string): void {
  for (const [id, index] of indexes) if (index.collection === readable) indexes.delete(id)
}
