import { indexView } from '../collections/collection-view.ts'
import { collectionOf } from '../collections/visibility.ts'
import type { Operation } from '../operation.ts'

export const listCollectionIndexes: Operation<'listCollectionIndexes'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenancy.tenant(params.app)
  const collection = collectionOf(tenant, params.collection)
  return { indexes: collection.indexes.map((index) => indexView(collection, index)) }
}
