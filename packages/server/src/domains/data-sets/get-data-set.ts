import type { Operation } from '../operation.ts'
import { dataSetView } from './data-set-view.ts'
import { noSuchDataSet } from './find-data-sets.ts'

export const getDataSet: Operation<'getDataSet'> = async ({ service }, { params }) => {
  const { catalog } = (await service.tenancy.tenant(params.app)).data
  const own = [...catalog.dataSets.values()].find(({ name }) => name === params.name)
  if (own !== undefined) return dataSetView(own)
  const provided = service.dataSets.views.find(({ name }) => name === params.name)
  if (provided === undefined) throw noSuchDataSet(params.app, params.name)
  return provided
}
