import { Fault } from '../../base/fault.ts'
import { isOpen } from '../../model/read-level.ts'
import type { View } from '../../model/readable.ts'
import { refuseWithoutRead } from '../../services/access/access.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Call } from '../../services/call.ts'
import { type AnswerParts, answerQuery } from '../../services/reading/answer-query.ts'
import { type ListParts, prepareListRead } from '../../services/reading/prepare-list-read.ts'
import { formatLag } from '../../services/reading/view-sources.ts'
import type { Operation } from '../operation.ts'
import { findView, makeNoViewFault, requireView } from './require-view.ts'
import { buildFind } from './variables.ts'

export const queryView: Operation<'queryView', ListParts | AnswerParts> = async (
  call,
  { params, query },
) => {
  const { app, name } = params
  const tenant = await call.service.tenants.load(app)
  // A caller that may not know of the view is told nothing of the parameters either.
  const { view } = await requireReadableView(call, tenant, name)
  const root = `${app}::${view.name}`
  try {
    const plan = tenant.data.catalog.views.get(view.id)?.plan
    const columns = plan?.program.columns ?? []
    const find = buildFind(call.requestInfo.query, { variables: view.variables, columns })
    const request = await prepareListRead(call, { root, find, ...query })
    const now = call.service.world.now()
    return await answerQuery(call, {
      ...request,
      reply: ({ row, records }) => {
        const asOf = `{"block_height":${row.height},"sequence":${row.sequence}}`
        return `{"data":[${records}],"count":${row.count},"view":${JSON.stringify(view.name)},"as_of":${asOf}${formatLag(row, now)}}`
      },
    })
  } catch (error) {
    throw asOfView(error, tenant, name)
  }
}

/** The view if the caller may read it, free or by paying. */
export async function requireReadableView(
  call: Call<ListParts>,
  tenant: Tenant,
  name: string,
): Promise<View> {
  const found = findView(tenant, name)
  if (found === undefined || !isOpen(tenant.data.catalog, found))
    refuseWithoutRead(call.caller, tenant.application)
  const state = requireView(tenant, name)
  try {
    await prepareListRead(call, { root: `${tenant.application.app_id}::${state.view.name}` })
    return state
  } catch (error) {
    throw asOfView(error, tenant, name)
  }
}

/** A view is no collection to those who may not know of it either. */
function asOfView(error: unknown, tenant: Tenant, name: string): unknown {
  const isUnknown = error instanceof Fault && error.code === 'COLLECTION_NOT_FOUND'
  return isUnknown ? makeNoViewFault(tenant, name) : error
}
