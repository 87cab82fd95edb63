import type { Operation } from '../operation.ts'
import { viewInfos } from './view-info.ts'

export const listViews: Operation<'listViews'> = async ({ service }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  return { views: await viewInfos(service, tenant) }
}
