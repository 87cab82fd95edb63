import { findQuery, isPublic } from '../../services/queries/stored-queries.ts'
import type { Operation } from '../operation.ts'
import { type QueryView, queryView } from './describe-query.ts'
import { queriesOpenapi } from './query-openapi.ts'

export const getQueriesOpenapi: Operation<'getQueriesOpenapi'> = async (call, { params }) => {
  const { tenancy, payments } = call.service
  const tenant = await tenancy.tenant(params.app)
  const { catalog } = tenant.data
  const views: QueryView[] = []
  for (const name of [...catalog.queries.keys()].toSorted()) {
    const found = findQuery(catalog, name)
    if (isPublic(catalog, found)) views.push(await queryView(call, tenant, found))
  }
  return queriesOpenapi(tenant.application, views, payments.ports.publicUrl())
}
