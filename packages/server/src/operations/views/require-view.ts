import { Fault } from '../../base/fault.ts'
import type { View } from '../../model/readable.ts'
import type { Tenant } from '../../services/applications/tenants.ts'

/** Returns the view that is read under the name or id now, or throws 404. */
export function requireView(tenant: Tenant, nameOrId: string): View {
  const found = findView(tenant, nameOrId)
  if (found === undefined) throw makeNoViewFault(tenant, nameOrId)
  return found
}

export function findView({ data }: Tenant, nameOrId: string): View | undefined {
  const { viewsByName, viewsById } = data.catalog
  return viewsById.get(nameOrId) ?? viewsByName.get(nameOrId)
}

export function makeNoViewFault(tenant: Tenant, name: string): Fault {
  const { app_id: app } = tenant.application
  return new Fault('VIEW_NOT_FOUND', {
    message: `There is no view ${name} in ${app}`,
    details: { app, view: name },
  })
}
