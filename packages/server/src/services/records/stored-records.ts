import type { Entry } from '@tollbase/verify/entry'
import type { Block } from '../../chain/parse-block.ts'
import type { Tenant } from '../applications/tenants.ts'

/** The entries of one store, with their place on the chain. */
export type StoredGroup = {
  readonly height: number
  /** The sequence of the first entry within the block. */
  readonly sequence: number
  /** Undefined where erased. */
  readonly entries: readonly (Entry | undefined)[]
  /** Returns the leaf hash of the entry at this place within the group. */
  readonly leafHash: (at: number) => Buffer
}

/** Returns a group as its block has it. */
export function sliceGroup(block: Block, sequence: number, count: number): StoredGroup {
  return {
    height: block.height,
    sequence,
    entries: block.entries.slice(sequence, sequence + count),
    leafHash: (at) => block.leafHash(sequence + at),
  }
}

/** Describes stored records as the public clients expect them, but for those that were erased since. */
export function describeStoredRecords(tenant: Tenant, group: StoredGroup) {
  const { height, sequence } = group
  return group.entries.flatMap((entry, at) => {
    if (entry === undefined) return []
    const leafHash = group.leafHash(at).toString('hex')
    const collection = tenant.data.catalog.byId.get(String(entry.header.collection))
    return [
      {
        id: String(entry.header.key),
        celestia_height: height,
        block_height: height,
        sequence: sequence + at,
        blob_id: leafHash,
        namespace: collection?.namespace ?? tenant.application.app_id,
        tx_hash: `0x${leafHash}`,
      },
    ]
  })
}
