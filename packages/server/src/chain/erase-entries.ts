import { decodeBlockBody, encodeBlockBody } from '@tollbase/verify/block'
import type { Database } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { BlockStore } from './block-store.ts'
import { addScrubMark } from './scrub-marks.ts'

/**
 * Erases entries from the bodies of their blocks, one block per transaction, and yields the number of bytes that each
 * block lost. The chain's next holder continues from the size in the lease, so the same transaction reduces that size.
 */
export async function* eraseEntries(
  database: Database,
  { schema, now }: { readonly schema: string; readonly now: number },
  leaves: readonly number[],
): AsyncGenerator<number, void, undefined> {
  if (leaves.length > 0) await addScrubMark(database, schema, now)
  const sorted = [...new Set(leaves)].sort((one, other) => one - other)
  const store = new BlockStore(database, schema)
  for (let at = 0; at < sorted.length; ) {
    const leaf = sorted[at] ?? 0
    const block = await store.blockOfLeaf(leaf)
    if (block === undefined) throw new Error(`the chain ${schema} has no leaf ${leaf}`)
    const { height, firstLeaf, entryCount } = block
    let next = at
    while (next < sorted.length && (sorted[next] ?? 0) < firstLeaf + entryCount) next += 1
    if (next === at) throw new Error(`the chain ${schema} has no leaf ${leaf}`)
    const sequences = new Set(sorted.slice(at, next).map((one) => one - firstLeaf))
    const bytes = await eraseFromBlock(database, schema, { height, sequences })
    if (bytes > 0) yield bytes
    at = next
  }
}

function eraseFromBlock(
  database: Database,
  schema: string,
  { height, sequences }: { readonly height: number; readonly sequences: ReadonlySet<number> },
): Promise<number> {
  const block = sql.id(schema, 'block')
  return database.transaction(async (tx) => {
    const [row] = await tx.query<{ body: Buffer }>(
      sql`SELECT body FROM ${block} WHERE height = ${height} FOR UPDATE`,
    )
    const before = row?.body ?? Buffer.alloc(0)
    const kept = decodeBlockBody(before).map((entry, at) => (sequences.has(at) ? undefined : entry))
    const after = Buffer.from(encodeBlockBody(kept))
    const bytes = before.length - after.length
    // A body that is as long has the same entries: it was done before.
    if (bytes === 0) return 0
    await tx.execute(sql`UPDATE ${block} SET body = ${after} WHERE height = ${height}`)
    await tx.execute(sql`
      UPDATE operations.chain_lease SET body_bytes = body_bytes - ${bytes}::int8 WHERE chain = ${schema}`)
    return bytes
  })
}
