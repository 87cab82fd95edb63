import { Fault } from '../../base/fault.ts'
import type { Chain } from '../../chain/chain.ts'
import { type Catalog, listReadables } from '../../model/catalog.ts'
import { isOpen } from '../../model/read-level.ts'
import { canDescribe, refuseWithoutRead } from '../../services/access/access.ts'
import type { Call } from '../../services/call.ts'
import { isPublic } from '../../services/queries/stored-queries.ts'

/**
 * Returns the chain, if the caller may see how it grows. Anybody may see that of the service, and of applications
 * that have something open to strangers; the size of any other would tell what happens there, so it is for callers
 * that may Read.
 */
export async function requireVisibleChain(
  { service, caller }: Call<'tenants'>,
  app: string,
): Promise<Chain> {
  const { tenants } = service
  if (app === 'system') return tenants.system.chain
  const { application, chain, data } = await tenants.load(app)
  if (hasOpenSource(data.catalog)) return chain
  refuseWithoutRead(caller, application)
  if (canDescribe(caller, application)) return chain
  throw new Fault('UNAUTHORIZED', {
    message: `Nothing of ${app} is open to strangers; a key of it is needed (X-App-Key)`,
  })
}

function hasOpenSource(catalog: Catalog): boolean {
  if (listReadables(catalog).some((one) => isOpen(catalog, one))) return true
  return [...catalog.queries.values()].some((versions) => {
    const newest = versions.at(-1)
    return newest !== undefined && isPublic(catalog, { stored: newest, newest })
  })
}
