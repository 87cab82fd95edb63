import { requireCollectionOrView } from '../../services/access/authorize-collections.ts'
import type { Operation } from '../operation.ts'
import { deleteNamedIndex } from './delete-index.ts'

export const deleteCollectionIndex: Operation<'deleteCollectionIndex', 'tenancy'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenancy.loadTenant(params.app)
  return deleteNamedIndex(tenant, params.name, () => [
    requireCollectionOrView(tenant, params.collection),
  ])
}
