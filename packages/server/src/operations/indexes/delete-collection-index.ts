import { requireCollectionOrView } from '../../services/access/find-sources.ts'
import type { Operation } from '../operation.ts'
import { deleteNamedIndex } from './delete-index.ts'

export const deleteCollectionIndex: Operation<'deleteCollectionIndex', 'tenants'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  return deleteNamedIndex(tenant, params.name, () => [
    requireCollectionOrView(tenant, params.collection),
  ])
}
