import { Fault } from '../../base/fault.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import type { Operation } from '../operation.ts'

export const deleteRelation: Operation<'deleteRelation', 'tenants'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const { id } = params
    requireRelation(tenant, id)
    await define(tenant, [{ kind: 'relation', id, body: undefined }])
    return { success: true, message: `Relation ${id} is deleted; its indexes stay` }
  })
}

/** 404 where the application has no relation of this id. */
export function requireRelation({ data }: Tenant, id: string): void {
  if (!data.catalog.relations.has(id))
    throw new Fault('RELATION_NOT_FOUND', { message: `There is no relation ${id}` })
}
