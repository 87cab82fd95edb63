import type { Operation } from '../operation.ts'
import { viewInfo } from './describe-view.ts'
import { viewOf } from './require-view.ts'

export const getView: Operation<'getView'> = async (call, { params }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  return viewInfo(call, tenant, viewOf(tenant, params.name))
}
