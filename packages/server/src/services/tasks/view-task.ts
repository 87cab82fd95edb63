import type { Task } from '@tollbase/contract/task'
import type { Static } from 'typebox'
import type { Block } from '../../chain/parse-block.ts'
import type { Database } from '../../database/database.ts'
import type { StoredView } from '../../model/definitions.ts'
import { readProgress, type ViewProgress } from '../../projections/view-state.ts'
import type { Tenant } from '../applications/tenants.ts'
import { readBuildProgress } from '../views/build-progress.ts'

/** The task of filling or refreshing a view that begins with this entry; undefined where the entry begins none. */
export async function findViewTask(
  database: Database,
  tenant: Tenant,
  place: { id: string; block: Block; sequence: number },
): Promise<Static<typeof Task> | undefined> {
  const { block, sequence } = place
  const entry = block.entry(sequence)
  if (entry === undefined) return undefined
  const { type, kind } = entry.header
  const isCreation = type === 'definition' && kind === 'view' && entry.body !== ''
  if (!isCreation && type !== 'view_refresh') return undefined
  const id = String(isCreation ? entry.header.id : entry.header.view)
  const progress = (await readProgress(database, tenant.schema)).get(id)
  const time = new Date(block.time).toISOString()
  const leaf = block.firstLeaf + sequence + 1
  const at = progress?.refreshedAt
  const view = tenant.data.catalog.views.get(id)?.view
  const status = toTaskStatus(progress, { leaf, mode: view?.refresh_mode })
  const isUnderWay = view !== undefined && status === 'StoringData'
  const now = isUnderWay ? await readBuildProgress(database, tenant, view) : undefined
  // Neither the builder of a view nor the holder of the ticket may learn how much another application holds.
  const isOwn = view?.reads.every(({ app }) => app === view.app) === true
  return {
    ticket_id: place.id,
    status,
    operation_type: isCreation ? 'create_view' : 'refresh_view',
    created_at: time,
    updated_at: at === undefined ? time : new Date(at).toISOString(),
    user_address: null,
    transaction_hash: null,
    block_height: block.height,
    progress_log: [
      `asked for in block ${block.height}`,
      ...(at === undefined ? [] : [`the view is whole up to block ${progress?.height}`]),
      ...(now !== undefined && isOwn ? [`${now.done} of about ${now.total} ${now.unit} read`] : []),
    ],
    ...(now !== undefined && { progress: isOwn ? now : { percent: now.percent } }),
    ...(status === 'Completed' && { progress: { percent: 100 } }),
  }
}

function toTaskStatus(
  progress: ViewProgress | undefined,
  { leaf, mode }: { leaf: number; mode: StoredView['refresh_mode'] | undefined },
): Static<typeof Task>['status'] {
  if (progress === undefined) return { Failed: { error: 'the view is deleted or replaced' } }
  const { status, reason } = progress
  // Each position of a lazy view was requested; what happened to the view later does not concern this task.
  if (mode === 'lazy' && progress.refreshedAt !== undefined && progress.leaf >= leaf)
    return 'Completed'
  if (status === 'stale') return { Failed: { error: reason ?? 'something went wrong on our side' } }
  return status === 'live' ? 'Completed' : 'StoringData'
}
