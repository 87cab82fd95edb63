import type { Database } from '../../database/database.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { findBlockHeight, findViewLeaf } from '../../services/views/view-store.ts'

/** Finds the group of entries that defines a view in the log. */
export async function findViewPlace(
  database: Database,
  { schema, chain }: Tenant,
  id: string,
): Promise<{ height: number; sequence: number; count: number } | undefined> {
  const leaf = await findViewLeaf(database, schema, id)
  const height = leaf === undefined ? undefined : await findBlockHeight(database, schema, leaf)
  const block = height === undefined ? undefined : await chain.readOutline(height)
  if (leaf === undefined || block === undefined) return undefined
  const sequence = leaf - block.firstLeaf
  const next = block.groupStarts.find((start) => start > sequence) ?? block.header.entryCount
  return { height: block.height, sequence, count: next - sequence }
}
