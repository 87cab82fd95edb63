import { Fault } from '../../base/fault.ts'
import { type Caller, canDescribe, canRead, refuseWithoutRead } from '../access/access.ts'
import type { Tenant } from '../applications/tenants.ts'
import { isPublic, type QueryLookup, requireQuery } from './stored-queries.ts'

type Named = { readonly name: string; readonly version: number | undefined }

/**
 * Returns the query if the caller may run it; 403 where a key of its application lacks Read, 401 where one is
 * needed.
 */
export function requireAskableQuery(caller: Caller, tenant: Tenant, named: Named): QueryLookup {
  const { name, version } = named
  return requirePublicOrOwn(caller, tenant, { name, version, own: canRead })
}

/**
 * Returns the query if the caller may know its description: anybody may for public ones, callers that may describe
 * the application for all.
 */
export function requireDescribableQuery(caller: Caller, tenant: Tenant, named: Named): QueryLookup {
  const { name, version } = named
  return requirePublicOrOwn(caller, tenant, { name, version, own: canDescribe })
}

function requirePublicOrOwn(
  caller: Caller,
  tenant: Tenant,
  { name, version, own }: Named & { readonly own: typeof canRead },
): QueryLookup {
  const { catalog } = tenant.data
  const newest = catalog.queries.get(name)?.at(-1)
  const isOpen = newest !== undefined && isPublic(catalog, { stored: newest, newest })
  if (!isOpen) refuseWithoutRead(caller, tenant.application)
  const found = requireQuery(catalog, name, version)
  if (isPublic(catalog, found)) return found
  refuseWithoutRead(caller, tenant.application)
  if (own(caller, tenant.application)) return found
  throw new Fault('UNAUTHORIZED', {
    message: `A key of ${tenant.application.app_id} is needed (X-App-Key)`,
  })
}
