import type { Block } from '../../chain/block.ts'
import type { Tenant } from '../tenancy/tenancy.ts'

/** What the public clients want to know of stored records, from their block. */
export function storedRecords(
  tenant: Tenant,
  group: { block: Block; sequence: number; count: number },
) {
  const { block, sequence, count } = group
  return block.entries.slice(sequence, sequence + count).map((entry, at) => {
    const leafHash = block.leafHash(sequence + at).toString('hex')
    const collection = tenant.data.catalog.byId.get(String(entry.header.collection))
    return {
      id: String(entry.header.key),
      celestia_height: block.height,
      block_height: block.height,
      sequence: sequence + at,
      blob_id: leafHash,
      namespace: collection?.namespace ?? tenant.application.app_id,
      tx_hash: `0x${leafHash}`,
    }
  })
}
