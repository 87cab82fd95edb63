import { parseBlockHeader } from '@tollbase/verify/block'
import type { Queryable } from '../database/database.ts'
import { BlockStore } from './block-store.ts'

/**
 * Finds, by halves, the number of entries in a chain's blocks up to `height` that are not later than a time,
 * milliseconds since 1970.
 */
export async function findSizeAt(
  database: Queryable,
  {
    schema,
    height,
    time,
  }: { readonly schema: string; readonly height: number; readonly time: number },
): Promise<number> {
  const store = new BlockStore(database, schema)
  let size = 0
  for (let [from, to] = [1, height]; from <= to; ) {
    const middle = Math.floor((from + to) / 2)
    const text = await store.headerText(middle)
    if (text === undefined) throw new Error(`block ${middle} is missing; run the audit`)
    const header = parseBlockHeader(text)
    if (header.time <= time) {
      size = header.treeSize
      from = middle + 1
    } else {
      to = middle - 1
    }
  }
  return size
}
