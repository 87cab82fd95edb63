import type { Operation } from '../operation.ts'
import { describeWholeIndex } from './describe-index.ts'
import { requireNamedIndex } from './require-index.ts'

export const getIndex: Operation<'getIndex', 'tenancy' | 'payments' | 'indexBuilder'> = async (
  { service },
  { params },
) => {
  const tables = await service.tenancy.loadTenant(params.app)
  const { collection, index } = requireNamedIndex(tables, params)
  return describeWholeIndex({ service, tables }, collection, index)
}
