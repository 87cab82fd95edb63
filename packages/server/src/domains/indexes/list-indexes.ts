import { indexView } from '../collections/collection-view.ts'
import type { Operation } from '../operation.ts'

export const listIndexes: Operation<'listIndexes'> = async ({ service }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  return [...tenant.data.catalog.byName.values()].flatMap((collection) =>
    collection.indexes.map((index) => indexView(collection, index)),
  )
}
