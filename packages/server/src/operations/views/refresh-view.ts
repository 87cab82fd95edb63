import { awaitWithin } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import { makeJsonReply } from '../../http/reply.ts'
import type { ForeignPositions, StoredView } from '../../model/definitions.ts'
import { readProgress } from '../../projections/view-state.ts'
import { canDescribe } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import { sealTicket, stateAlone } from '../../services/tasks/tickets.ts'
import { checkGrants } from '../../services/views/build-view.ts'
import { readWatermark } from '../../services/views/view-store.ts'
import type { Operation } from '../operation.ts'
import { patienceMs } from './create-and-describe.ts'
import { type DescribeParts, describeView } from './describe-view.ts'
import { makeNoViewFault, requireView } from './require-view.ts'

type Parts = DescribeParts | 'viewBuilder' | 'ticketKey'

export const refreshView: Operation<'refreshView', Parts> = async (call, { params }) => {
  const tenant = await call.service.tenants.load(params.app)
  try {
    return await refresh(call, tenant, params)
  } catch (error) {
    throw canDescribe(call.caller, tenant.application) ? error : hideReason(error)
  }
}

/** The codes of refusals whose texts name sources of the view, or tell of what is in them. */
const telling: ReadonlySet<string> = new Set(['CONFLICT', 'GRANT_NEEDED', 'FIELD_NOT_OFFERED'])

/** A key that only writes may know neither of these. */
function hideReason(error: unknown): unknown {
  if (!(error instanceof Fault) || !telling.has(error.code)) return error
  return new Fault(error.code, {
    message: 'The view could not be refreshed. A caller with Read is told why',
    cause: error,
  })
}

async function refresh(call: Call<Parts>, tenant: Tenant, params: { app: string; name: string }) {
  const { service } = call
  const state = requireView(tenant, params.name)
  const { view } = state
  await checkGrants({ tenantOf: (app) => service.tenants.load(app) }, tenant, view)
  if ((await requireProgress(service.database, tenant, view)).status === 'live') {
    return {
      success: true,
      message: `View ${view.name} is live`,
      ...(await describeRefresh(call, tenant, view)),
    }
  }
  const ticket_id = await noteRefresh(call, tenant, view)
  const settled = service.viewBuilder.whenDone(params.app, view.id).then(() => true)
  const isDone = await awaitWithin(settled, {
    world: service.world,
    ms: patienceMs,
    otherwise: false,
  })
  if (!isDone) {
    const message = `View ${view.name} is being refreshed; its task says how far`
    return makeJsonReply({ success: true, message, ticket_id }, { status: 202 })
  }
  const { status, reason } = await requireProgress(service.database, tenant, view)
  if (status === 'stale')
    throw new Fault('CONFLICT', {
      message: `The view ${view.name} could not be refreshed: ${reason ?? 'something went wrong'}`,
    })
  const message = `View ${view.name} is refreshed`
  return { success: true, message, ...(await describeRefresh(call, tenant, view)), ticket_id }
}

/**
 * Returns the progress and the counts of the view to callers that may know them, which a key that only writes may
 * not.
 */
async function describeRefresh(call: Call<DescribeParts>, tenant: Tenant, { name }: StoredView) {
  if (!canDescribe(call.caller, tenant.application)) return {}
  const { refresh_metadata } = await describeView(call, tenant, requireView(tenant, name))
  return { refresh_metadata }
}

async function requireProgress(database: Database, tenant: Tenant, view: StoredView) {
  const progress = await readProgress(database, tenant.schema)
  const now = progress.get(view.id)
  // It was deleted or replaced while it was refreshed.
  if (now === undefined) throw makeNoViewFault(tenant, view.name)
  return now
}

/** The refresh is an entry: the view is brought to it, and to where other applications' chains are now. */
async function noteRefresh(
  { service, caller }: Call<'database' | 'tenants' | 'ticketKey'>,
  tenant: Tenant,
  view: StoredView,
): Promise<string> {
  const positions: Record<string, number> = {}
  for (const app of Object.keys(view.positions)) {
    const owner = await service.tenants.load(app)
    positions[app] = (await readWatermark(service.database, owner.schema)).leaf
  }
  const { height, sequence } = await tenant.chain.append([makeRefreshEntry(view, positions)])
  await tenant.chain.whenApplied(height)
  const application = tenant.application.number
  // The task of a refresh counts what the view reads.
  const count = canDescribe(caller, tenant.application) ? 1 : stateAlone
  return sealTicket(service.ticketKey, { application, height, sequence, count })
}

function makeRefreshEntry({ id }: StoredView, positions: ForeignPositions) {
  return { header: { type: 'view_refresh', view: id }, body: JSON.stringify(positions) }
}
