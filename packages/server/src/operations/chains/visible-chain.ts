import { Fault } from '../../base/fault.ts'
import type { Chain } from '../../chain/chain.ts'
import { type Catalog, readables } from '../../model/catalog.ts'
import { isOpen } from '../../model/read-level.ts'
import { mayDescribe, refuseWithoutRead } from '../../services/access/access.ts'
import type { Call } from '../../services/call.ts'
import { isPublic } from '../../services/queries/stored-queries.ts'

/**
 * The chain, if the caller may see how it grows: anybody that of the service, and of applications that have something
 * open to strangers; of others the size alone would tell what happens there, so they are for who may Read.
 */
export async function visibleChain({ service, caller }: Call, app: string): Promise<Chain> {
  const { tenancy } = service
  if (app === 'system') return tenancy.system.chain
  const { application, chain, data } = await tenancy.tenant(app)
  if (hasOpen(data.catalog)) return chain
  refuseWithoutRead(caller, application)
  if (mayDescribe(caller, application)) return chain
  throw new Fault('UNAUTHORIZED', {
    message: `Nothing of ${app} is open to strangers; a key of it is needed (X-App-Key)`,
  })
}

function hasOpen(catalog: Catalog): boolean {
  if (readables(catalog).some((one) => isOpen(catalog, one))) return true
  return [...catalog.queries.values()].some((versions) => {
    const newest = versions.at(-1)
    return newest !== undefined && isPublic(catalog, { stored: newest, newest })
  })
}
