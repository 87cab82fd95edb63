import { Fault } from '../../base/fault.ts'
import { mayDescribe, mayRead, refuseWithoutRead } from '../access/access.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { Call } from '../call.ts'
import { type FoundQuery, findQuery, isPublic } from './stored-queries.ts'

type Named = { readonly name: string; readonly version: number | undefined }

/** The query if the caller may ask it; 403 where a key of its application lacks Read, 401 where one is needed. */
export function askableQuery(call: Call, tenant: Tenant, named: Named): FoundQuery {
  return publicOrOwn(call, tenant, { ...named, own: mayRead })
}

/** The query if the caller may know its description: anybody of the public ones, `mayDescribe` of all. */
export function describableQuery(call: Call, tenant: Tenant, named: Named): FoundQuery {
  return publicOrOwn(call, tenant, { ...named, own: mayDescribe })
}

function publicOrOwn(
  { caller }: Call,
  tenant: Tenant,
  { name, version, own }: Named & { readonly own: typeof mayRead },
): FoundQuery {
  const { catalog } = tenant.data
  const newest = catalog.queries.get(name)?.at(-1)
  const isOpen = newest !== undefined && isPublic(catalog, { stored: newest, newest })
  if (!isOpen) refuseWithoutRead(caller, tenant.application)
  const found = findQuery(catalog, name, version)
  if (isPublic(catalog, found)) return found
  refuseWithoutRead(caller, tenant.application)
  if (own(caller, tenant.application)) return found
  throw new Fault('UNAUTHORIZED', {
    message: `A key of ${tenant.application.app_id} is needed (X-App-Key)`,
  })
}
