import { indexView } from '../collections/collection-view.ts'
import { collectionOf } from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'
import { findIndex } from './find-index.ts'

export const getIndex: Operation<'getIndex'> = async ({ service }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  const { collection, index } = findIndex([collectionOf(tenant, params.collection)], params.name)
  return indexView(collection, index)
}
