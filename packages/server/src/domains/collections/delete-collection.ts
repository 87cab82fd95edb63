import type { Operation } from '../operation.ts'
import { define } from '../tenancy/define.ts'
import { collectionOf } from './visibility.ts'

export const deleteCollection: Operation<'deleteCollection'> = async ({ service }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  return tenant.definitions.run(async () => {
    const collection = collectionOf(tenant, params.collection)
    await define(tenant, [{ kind: 'collection', id: collection.id, body: undefined }])
    return {
      success: true,
      message: `Collection ${collection.name} is deleted; its entries stay in the chain`,
    }
  })
}
