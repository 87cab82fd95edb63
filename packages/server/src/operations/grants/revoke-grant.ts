import { Fault } from '../../base/fault.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant, Tenants } from '../../services/applications/tenants.ts'
import type { Operation } from '../operation.ts'

export const revokeGrant: Operation<'revokeGrant', 'tenants'> = ({ service }, { params }) =>
  revoke(service.tenants, params)

export const deleteGrant: Operation<'deleteGrant', 'tenants'> = ({ service }, { params }) =>
  revoke(service.tenants, params)

async function revoke(tenants: Tenants, { app, id }: { app: string; id: string }) {
  const tenant = await tenants.load(app)
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
