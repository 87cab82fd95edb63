import { awaitTurn } from '../../base/await-turn.ts'
import { canDescribe } from '../../services/access/access.ts'
import { isPublic, requireQuery } from '../../services/queries/stored-queries.ts'
import type { Operation } from '../operation.ts'
import { describeQuery, type QueryDescription } from './describe-query.ts'

export const listQueries: Operation<'listQueries', 'tenants' | 'queryPlans'> = async (
  call,
  { params },
) => {
  const tenant = await call.service.tenants.load(params.app)
  const { catalog } = tenant.data
  const all = canDescribe(call.caller, tenant.application)
  const queries: QueryDescription[] = []
  for (const name of [...catalog.queries.keys()].toSorted()) {
    const found = requireQuery(catalog, name)
    if (all || isPublic(catalog, found)) queries.push(await describeQuery(call, tenant, found))
    await awaitTurn()
  }
  return { queries }
}
