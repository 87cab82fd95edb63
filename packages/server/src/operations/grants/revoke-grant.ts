import { Fault } from '../../base/fault.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenancy, Tenant } from '../../services/applications/tenancy.ts'
import type { Operation } from '../operation.ts'

export const revokeGrant: Operation<'revokeGrant', 'tenancy'> = ({ service }, { params }) =>
  revoke(service.tenancy, params)

export const deleteGrant: Operation<'deleteGrant', 'tenancy'> = ({ service }, { params }) =>
  revoke(service.tenancy, params)

async function revoke(tenancy: Tenancy, { app, id }: { app: string; id: string }) {
  const tenant = await tenancy.loadTenant(app)
  return tenant.definitions.run(async () => {
    requireGrant(tenant, id)
    await define(tenant, [{ kind: 'grant', id, body: undefined }])
    return { success: true, message: 'The grant is taken back' }
  })
}

/** 404 where the application has given no grant of this id. */
export function requireGrant({ data }: Tenant, id: string): void {
  if (!data.catalog.grants.has(id))
    throw new Fault('GRANT_NOT_FOUND', { message: `There is no grant ${id}` })
}
