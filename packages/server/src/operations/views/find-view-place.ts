import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Service } from '../../services/call.ts'
import { blockOfLeaf, leafOfView } from '../../services/views/view-store.ts'

/** The group of entries that defines a view, in the log. */
export async function placeOfView(
  { database }: Pick<Service, 'database'>,
  { schema, chain }: Tenant,
  id: string,
): Promise<{ height: number; sequence: number; count: number } | undefined> {
  const leaf = await leafOfView(database, schema, id)
  const height = leaf === undefined ? undefined : await blockOfLeaf(database, schema, leaf)
  const block = height === undefined ? undefined : await chain.readBlock(height)
  if (leaf === undefined || block === undefined) return undefined
  const sequence = leaf - block.firstLeaf
  const next = block.groupStarts.find((start) => start > sequence) ?? block.header.entryCount
  return { height: block.height, sequence, count: next - sequence }
}
