import type { Operation } from '../operation.ts'
import { describeViews } from './describe-view.ts'

export const listViews: Operation<'listViews', 'world' | 'database' | 'tenants'> = async (
  call,
  { params },
) => {
  const tenant = await call.service.tenants.load(params.app)
  return { views: await describeViews(call, tenant) }
}
