import { present } from '../../base/assert.ts'
import { within } from '../../base/await-within.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'
import type { Call } from '../../services/call.ts'
import { sealTicket } from '../../services/tasks/tickets.ts'
import { type Defined, defineView } from './define-view.ts'
import { viewInfo } from './describe-view.ts'
import { placeOfView } from './find-view-place.ts'
import { viewOf } from './require-view.ts'
import type { ViewWish } from './resolve-view.ts'

/** So long a reply waits for a view to be whole; the public clients wait 30 seconds for a reply. */
export const patienceMs = 10_000

/** Creates a view, waits a little for it to be filled, and tells of it. */
export async function createAndTell(call: Call, tenant: Tenant, wish: ViewWish) {
  const { service } = call
  const defined = await defineView(service, tenant, wish)
  const { view } = defined
  const { app_id: app, number: application } = tenant.application
  await within(service.views.settled(app, view.id), {
    world: service.world,
    ms: patienceMs,
    otherwise: undefined,
  })
  const place = defined.place ?? (await placeOfView(service, tenant, view.id))
  const info = await viewInfo(call, tenant, viewOf(tenant, view.name))
  return {
    success: true,
    message: messageOf(defined, info.status),
    view_name: view.name,
    ticket_id: sealTicket(service.ticketKey, {
      application,
      ...present(place, 'the entry of a view'),
    }),
    view: info,
  }
}

function messageOf({ view, place }: Defined, status: string): string {
  if (place === undefined) return `Materialized view ${view.name} already exists`
  const text = 'Materialized view created successfully'
  if (status === 'building') return `${text}; it is being filled`
  return status === 'stale' ? `${text}; it stands still, see stale_reason` : text
}
