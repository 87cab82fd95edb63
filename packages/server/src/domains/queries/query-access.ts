import { Fault } from '../../base/fault.ts'
import { isInsider, mayRead } from '../access/access.ts'
import type { Call } from '../call.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { type FoundQuery, findQuery, isPublic } from './stored-queries.ts'

/** The query if the caller may ask it; 401 where a key of its application is needed, 403 where his lacks Read. */
export function askableQuery(
  call: Call,
  tenant: Tenant,
  { name, version }: { readonly name: string; readonly version: number | undefined },
): FoundQuery {
  const found = findQuery(tenant.data.catalog, name, version)
  const { application } = tenant
  const { caller } = call
  if (isPublic(tenant.data.catalog, found)) return found
  if (mayRead(caller, application)) return found
  if (caller.kind === 'key' && caller.key.app_id === application.app_id)
    throw new Fault('FORBIDDEN', { message: 'The key lacks the permission Read' })
  throw keyNeeded(tenant)
}

/** The query if the caller may know its description: everybody of the public ones, insiders of all. */
export function describableQuery(
  call: Call,
  tenant: Tenant,
  { name, version }: { readonly name: string; readonly version: number | undefined },
): FoundQuery {
  const found = findQuery(tenant.data.catalog, name, version)
  const { application } = tenant
  if (isInsider(call.caller, application)) return found
  if (isPublic(tenant.data.catalog, found)) return found
  throw keyNeeded(tenant)
}

function keyNeeded(tenant: Tenant): Fault {
  return new Fault('UNAUTHORIZED', {
    message: `A key of ${tenant.application.app_id} is needed (X-App-Key)`,
  })
}
