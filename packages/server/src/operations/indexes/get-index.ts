import type { Operation } from '../operation.ts'
import { describeWholeIndex } from './describe-index.ts'
import { requireNamedIndex } from './require-index.ts'

export const getIndex: Operation<'getIndex', 'tenants' | 'payments' | 'indexBuilder'> = async (
  { service },
  { params },
) => {
  const tables = await service.tenants.load(params.app)
  const { collection, index } = requireNamedIndex(tables, params)
  return describeWholeIndex({ service, tables }, collection, index)
}
