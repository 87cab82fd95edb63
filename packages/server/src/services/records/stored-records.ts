import type { Entry } from '@tollbase/verify/entry'
import { awaitTurn } from '../../base/await-turn.ts'
import type { Block } from '../../chain/parse-block.ts'
import type { Tenant } from '../applications/tenants.ts'

/** Entries that are decoded in one turn of the event loop: some 3 ms, and more where they are large. */
const entriesAtOnce = 200

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
  return makeGroup(block, sequence, block.entries.slice(sequence, sequence + count))
}

/** The same for a request that may ask for a large group: its entries are decoded some in each turn. */
export async function sliceGroupInTurns(
  block: Block,
  sequence: number,
  count: number,
): Promise<StoredGroup> {
  const entries: (Entry | undefined)[] = []
  while (entries.length < count) {
    if (entries.length % entriesAtOnce === 0) await awaitTurn()
    entries.push(block.entry(sequence + entries.length))
  }
  return makeGroup(block, sequence, entries)
}

function makeGroup(
  block: Block,
  sequence: number,
  entries: readonly (Entry | undefined)[],
): StoredGroup {
  const leafHash = (at: number) => block.leafHash(sequence + at)
  return { height: block.height, sequence, entries, leafHash }
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
