import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import type { Block } from '../../chain/parse-block.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { describeStoredRecords, sliceGroupInTurns } from '../../services/records/stored-records.ts'

/** Builds the task of a store from the log and the watermark; with what became of its records where they are named. */
export async function buildStoreTask(
  tenant: Tenant,
  group: { id: string; block: Block; sequence: number; count: number },
  { isNamed = true }: { readonly isNamed?: boolean } = {},
): Promise<Static<typeof Task>> {
  const { id, block } = group
  const time = new Date(block.time).toISOString()
  const projected = tenant.chain.watermark().height >= block.height
  const base = {
    ticket_id: id,
    status: projected ? 'Completed' : 'StoringData',
    operation_type: 'write',
    created_at: time,
    updated_at: time,
    user_address: null,
    transaction_hash: null,
    block_height: block.height,
    progress_log: [`${group.count} records committed in block ${block.height}`],
  }
  if (!projected) return base
  const progress_log = [...base.progress_log, 'in the tables']
  if (!isNamed) return { ...base, progress_log }
  const stored = await sliceGroupInTurns(block, group.sequence, group.count)
  const results = describeStoredRecords(tenant, stored)
  return {
    ...base,
    transaction_hash: results[0]?.tx_hash ?? null,
    progress_log,
    result: { results, celestia_height: block.height },
  }
}
