import type { Operation } from '../operation.ts'
import { define } from '../tenancy/define.ts'
import type { DataSetDefinition } from '../tenancy/definitions.ts'
import type { Tenant } from '../tenancy/tenancy.ts'
import { noSuchDataSet } from './find-data-sets.ts'

export const deleteDataSet: Operation<'deleteDataSet'> = async ({ service }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  return tenant.definitions.run(async () => {
    const { id, name } = ownDataSet(tenant, params.name)
    await define(tenant, [{ kind: 'data_set', id, body: undefined }])
    return { success: true, message: `The data set ${name} is deleted` }
  })
}

/** The application's own data set, or 404. */
export function ownDataSet({ application, data }: Tenant, name: string): DataSetDefinition {
  const set = [...data.catalog.dataSets.values()].find((one) => one.name === name)
  if (set === undefined) throw noSuchDataSet(application.app_id, name)
  return set
}
