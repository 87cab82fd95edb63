import type { Operation } from '../operation.ts'
import { dataSetView } from './describe-data-set.ts'

export const listDataSets: Operation<'listDataSets'> = async ({ service }, { params }) => {
  const { catalog } = (await service.tenancy.tenant(params.app)).data
  const own = [...catalog.dataSets.values()].map(dataSetView)
  const names = new Set(own.map(({ name }) => name))
  // Of two sets of one name queries look into the application's.
  const others = service.dataSets.views.filter(({ name }) => !names.has(name))
  return { datasets: [...own, ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
}
