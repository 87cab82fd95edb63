import { mayDescribe } from '../../services/access/access.ts'
import { findQuery, isPublic } from '../../services/queries/stored-queries.ts'
import type { Operation } from '../operation.ts'
import { type QueryView, queryView } from './describe-query.ts'

export const listQueries: Operation<'listQueries'> = async (call, { params }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  const { catalog } = tenant.data
  const all = mayDescribe(call.caller, tenant.application)
  const queries: QueryView[] = []
  for (const name of [...catalog.queries.keys()].toSorted()) {
    const found = findQuery(catalog, name)
    if (all || isPublic(catalog, found)) queries.push(await queryView(call, tenant, found))
  }
  return { queries }
}
