import type { DataSetDefinition } from '../../model/definitions.ts'
import { define } from '../../services/applications/define.ts'
import type { Tenant } from '../../services/applications/tenants.ts'
import { makeNoDataSetFault } from '../../services/data-sets/require-data-sets.ts'
import type { Operation } from '../operation.ts'

export const deleteDataSet: Operation<'deleteDataSet', 'tenants'> = async (
  { service },
  { params },
) => {
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const { id, name } = requireOwnDataSet(tenant, params.name)
    await define(tenant, [{ kind: 'data_set', id, body: undefined }])
    return { success: true, message: `The data set ${name} is deleted` }
  })
}

/** The application's own data set, or 404. */
export function requireOwnDataSet({ application, data }: Tenant, name: string): DataSetDefinition {
  const set = [...data.catalog.dataSets.values()].find((one) => one.name === name)
  if (set === undefined) throw makeNoDataSetFault(application.app_id, name)
  return set
}
