import { readableOf } from '../../services/access/authorize-collections.ts'
import type { Operation } from '../operation.ts'
import { deleteNamed } from './delete-index.ts'

export const deleteCollectionIndex: Operation<'deleteCollectionIndex'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenancy.tenant(params.app)
  return deleteNamed(tenant, params.name, () => [readableOf(tenant, params.collection)])
}
