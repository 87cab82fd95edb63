import { awaitTurn } from '../../base/await-turn.ts'
import { isPublic, requireQuery } from '../../services/queries/stored-queries.ts'
import type { Operation } from '../operation.ts'
import { describeQuery, type QueryDescription } from './describe-query.ts'
import { buildQueriesOpenapi } from './query-openapi.ts'

export const getQueriesOpenapi: Operation<
  'getQueriesOpenapi',
  'tenants' | 'payments' | 'queryPlans'
> = async (call, { params }) => {
  const { tenants, payments } = call.service
  const tenant = await tenants.load(params.app)
  const { catalog } = tenant.data
  const views: QueryDescription[] = []
  for (const name of [...catalog.queries.keys()].toSorted()) {
    const found = requireQuery(catalog, name)
    if (isPublic(catalog, found)) views.push(await describeQuery(call, tenant, found))
    await awaitTurn()
  }
  return await buildQueriesOpenapi(tenant.application, views, payments.ports.publicUrl())
}
