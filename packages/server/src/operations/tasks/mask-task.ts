import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'

const failed = { Failed: { error: 'It failed. A caller with Read is told why.' } }

/** Returns the state of a task alone: its results, its log and its failure name records and count them. */
export function maskTask(task: Static<typeof Task>): Static<typeof Task> {
  const { ticket_id, status, operation_type, created_at, updated_at, block_height, progress } = task
  return {
    ticket_id,
    status: typeof status === 'string' ? status : failed,
    operation_type,
    created_at,
    updated_at,
    user_address: null,
    transaction_hash: null,
    block_height,
    progress_log: [],
    ...(progress && { progress: { percent: progress.percent } }),
  }
}
