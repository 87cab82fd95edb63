import type { Operation } from '../operation.ts'
import { type DescribeParts, describeViews } from './describe-view.ts'

export const listViews: Operation<'listViews', DescribeParts> = async (call, { params }) => {
  const tenant = await call.service.tenants.load(params.app)
  return { views: await describeViews(call, tenant) }
}
