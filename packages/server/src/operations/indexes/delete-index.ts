import { listReadables } from '../../model/catalog.ts'
import type { Readable } from '../../model/readable.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Operation } from '../operation.ts'
import { requireIndex } from './require-index.ts'

export const deleteIndex: Operation<'deleteIndex', 'tenants'> = async ({ service }, { params }) => {
  const tenant = await service.tenants.load(params.app)
  return deleteNamedIndex(tenant, params.id, () => listReadables(tenant.data.catalog))
}

/** Deletes the index of this name among the collections, as they are once the mutex is held. */
export function deleteNamedIndex(tenant: Tenant, name: string, among: () => readonly Readable[]) {
  return tenant.definitions.run(async () => {
    const { index } = requireIndex(among(), name)
    await define(tenant, [{ kind: 'index', id: index.id, body: undefined }])
    return { success: true, message: `Index ${index.name} is deleted` }
  })
}
