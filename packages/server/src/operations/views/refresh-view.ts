import { within } from '../../base/await-within.ts'
import { Fault } from '../../base/fault.ts'
import { jsonReply } from '../../http/reply.ts'
import type { ForeignPositions, StoredView } from '../../model/definitions.ts'
import { readProgress } from '../../projections/view-state.ts'
import { mayDescribe } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Call, Service } from '../../services/call.ts'
import { sealTicket } from '../../services/tasks/tickets.ts'
import { checkGrants } from '../../services/views/build-view.ts'
import { watermarkOf } from '../../services/views/view-store.ts'
import type { Operation } from '../operation.ts'
import { patienceMs } from './create-and-describe.ts'
import { viewInfo } from './describe-view.ts'
import { noSuchView, viewOf } from './require-view.ts'

export const refreshView: Operation<'refreshView'> = async (call, { params }) => {
  const { service } = call
  const tenant = await service.tenancy.tenant(params.app)
  const state = viewOf(tenant, params.name)
  const { view } = state
  await checkGrants({ tenantOf: (app) => service.tenancy.tenant(app) }, tenant, view)
  if ((await progressOf(service, tenant, view)).status === 'live') {
    return {
      success: true,
      message: `View ${view.name} is live`,
      ...(await told(call, tenant, view)),
    }
  }
  const ticket_id = await noteRefresh(service, tenant, view)
  const settled = service.views.settled(params.app, view.id).then(() => true)
  const isDone = await within(settled, { world: service.world, ms: patienceMs, otherwise: false })
  if (!isDone) {
    const message = `View ${view.name} is being refreshed; its task says how far`
    return jsonReply({ success: true, message, ticket_id }, { status: 202 })
  }
  const { status, reason } = await progressOf(service, tenant, view)
  if (status === 'stale')
    throw new Fault('CONFLICT', {
      message: `The view ${view.name} could not be refreshed: ${reason ?? 'something went wrong'}`,
    })
  const message = `View ${view.name} is refreshed`
  return { success: true, message, ...(await told(call, tenant, view)), ticket_id }
}

/** How far the view is, and what it holds: for who may know, which a key that only writes may not. */
async function told(call: Call, tenant: Tenant, { name }: StoredView) {
  if (!mayDescribe(call.caller, tenant.application)) return {}
  const { refresh_metadata } = await viewInfo(call, tenant, viewOf(tenant, name))
  return { refresh_metadata }
}

async function progressOf(service: Service, tenant: Tenant, view: StoredView) {
  const progress = await readProgress(service.database, tenant.schema)
  const now = progress.get(view.id)
  // It was deleted or replaced while it was refreshed.
  if (now === undefined) throw noSuchView(tenant, view.name)
  return now
}

/** The refresh is an entry: the view is brought to it, and to where other applications' chains are now. */
async function noteRefresh(service: Service, tenant: Tenant, view: StoredView): Promise<string> {
  const positions: Record<string, number> = {}
  for (const app of Object.keys(view.positions)) {
    const owner = await service.tenancy.tenant(app)
    positions[app] = (await watermarkOf(service.database, owner.schema)).leaf
  }
  const { height, sequence } = await tenant.chain.append([refreshEntry(view, positions)])
  await tenant.chain.whenApplied(height)
  const application = tenant.application.number
  return sealTicket(service.ticketKey, { application, height, sequence, count: 1 })
}

function refreshEntry({ id }: StoredView, positions: ForeignPositions) {
  return { header: { type: 'view_refresh', view: id }, body: JSON.stringify(positions) }
}
