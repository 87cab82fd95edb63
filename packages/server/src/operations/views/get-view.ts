import type { Operation } from '../operation.ts'
import { type DescribeParts, describeView } from './describe-view.ts'
import { requireView } from './require-view.ts'

export const getView: Operation<'getView', DescribeParts> = async (call, { params }) => {
  const tenant = await call.service.tenants.load(params.app)
  return describeView(call, tenant, requireView(tenant, params.name))
}
