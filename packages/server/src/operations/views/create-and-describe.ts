import { requirePresent } from '../../base/assert.ts'
import { awaitWithin } from '../../base/await-within.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import { sealTicket } from '../../services/tasks/tickets.ts'
import { type DefinedView, defineView } from './define-view.ts'
import { type DescribeParts, describeView } from './describe-view.ts'
import { findViewPlace } from './find-view-place.ts'
import { requireView } from './require-view.ts'
import type { ViewRequest } from './resolve-view.ts'

/** The time that a reply waits for a view to be filled; the public clients wait 30 seconds for a reply. */
export const patienceMs = 10_000

/** Creates a view, waits a little for it to be filled, and describes it. */
export async function createAndDescribe(
  call: Call<DescribeParts | 'viewBuilder' | 'ticketKey' | 'queryPlans'>,
  tenant: Tenant,
  request: ViewRequest,
) {
  const { service } = call
  const defined = await defineView(call, tenant, request)
  const { view } = defined
  const { app_id: app, number: application } = tenant.application
  await awaitWithin(service.viewBuilder.whenDone(app, view.id), {
    world: service.world,
    ms: patienceMs,
    otherwise: undefined,
  })
  const place = defined.place ?? (await findViewPlace(service.database, tenant, view.id))
  const info = await describeView(call, tenant, requireView(tenant, view.name))
  return {
    success: true,
    message: formatMessage(defined, info.status),
    view_name: view.name,
    ticket_id: sealTicket(service.ticketKey, {
      application,
      ...requirePresent(place, 'the entry of a view'),
    }),
    view: info,
  }
}

function formatMessage({ view, place }: DefinedView, status: string): string {
  if (place === undefined) return `Materialized view ${view.name} already exists`
  const text = 'Materialized view created successfully'
  if (status === 'building') return `${text}; it is being filled`
  return status === 'stale' ? `${text}; it stands still, see stale_reason` : text
}
