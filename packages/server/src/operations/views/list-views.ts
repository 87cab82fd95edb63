import type { Operation } from '../operation.ts'
import { describeViews } from './describe-view.ts'

export const listViews: Operation<'listViews', 'world' | 'database' | 'tenancy'> = async (
  call,
  { params },
) => {
  const tenant = await call.service.tenancy.loadTenant(params.app)
  return { views: await describeViews(call, tenant) }
}
