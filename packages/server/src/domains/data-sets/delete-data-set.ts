import type { Operation } from '../operation.ts'
import { define } from '../tenancy/define.ts'
import { noSuchDataSet } from './find-data-sets.ts'

export const deleteDataSet: Operation<'deleteDataSet'> = async ({ service }, { params }) => {
  const tenant = await service.tenancy.tenant(params.app)
  return tenant.definitions.run(async () => {
    const { app, name } = params
    const set = [...tenant.data.catalog.dataSets.values()].find((one) => one.name === name)
    if (set === undefined) throw noSuchDataSet(app, name)
    await define(tenant, [{ kind: 'data_set', id: set.id, body: undefined }])
    return { success: true, message: `The data set ${name} is deleted` }
  })
}
