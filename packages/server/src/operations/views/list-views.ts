import type { Operation } from '../operation.ts'
import { viewInfos } from './describe-view.ts'

export const listViews: Operation<'listViews'> = async (call, { params }) => {
  const tenant = await call.service.tenancy.tenant(params.app)
  return { views: await viewInfos(call, tenant) }
}
