import type { Operation } from '../operation.ts'
import { viewOf } from './find-view.ts'
import { viewInfo } from './view-info.ts'

export const getView: Operation<'getView'> = async (call, { params }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  return viewInfo(call, tenant, viewOf(tenant, params.name))
}
