import type { Operation } from '../operation.ts'
import { wholeIndexView } from './describe-index.ts'
import { namedIndex } from './require-index.ts'

export const getIndex: Operation<'getIndex'> = async ({ service }, { params }) => {
  const tables = await service.tenancy.tenant(params.app)
  const { collection, index } = namedIndex(tables, params)
  return wholeIndexView({ service, tables }, collection, index)
}
