import type { Operation } from '../operation.ts'
import { viewOf } from './find-view.ts'
import { viewInfo } from './view-info.ts'

export const getView: Operation<'getView'> = async ({ service }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  return viewInfo(service, tenant, viewOf(tenant, params.name))
}
