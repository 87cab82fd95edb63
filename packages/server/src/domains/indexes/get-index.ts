import type { Operation } from '../operation.ts'
import { namedIndex } from './find-index.ts'
import { wholeIndexView } from './index-view.ts'

export const getIndex: Operation<'getIndex'> = async ({ service }, { params }) => {
  const tables = await service.tenancy.tenant(params.app)
  const { collection, index } = namedIndex(tables, params)
  return wholeIndexView({ service, tables }, collection, index)
}
