import { Fault } from '../../base/fault.ts'
import type { CollectionState, StoredView } from '../../model/definitions.ts'
import type { Tenant } from '../../services/applications/tenancy.ts'

export type ViewState = CollectionState & { readonly view: StoredView }

/** The view by its name or id as it is read now, or 404. */
export function viewOf(tenant: Tenant, nameOrId: string): ViewState {
  const found = findView(tenant, nameOrId)
  if (found?.view === undefined) throw noSuchView(tenant, nameOrId)
  return { ...found, view: found.view }
}

export function findView({ data }: Tenant, nameOrId: string): CollectionState | undefined {
  const { viewsByName, viewsById } = data.catalog
  return viewsByName.get(nameOrId) ?? viewsById.get(nameOrId)
}

export function noSuchView(tenant: Tenant, name: string): Fault {
  const { app_id: app } = tenant.application
  return new Fault('VIEW_NOT_FOUND', {
    message: `There is no view ${name} in ${app}`,
    details: { app, view: name },
  })
}
