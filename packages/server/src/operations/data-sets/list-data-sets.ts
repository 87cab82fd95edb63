import type { Operation } from '../operation.ts'
import { describeDataSet } from './describe-data-set.ts'

export const listDataSets: Operation<'listDataSets', 'tenants' | 'dataSets'> = async (
  { service },
  { params },
) => {
  const { catalog } = (await service.tenants.load(params.app)).data
  const own = [...catalog.dataSets.values()].map(describeDataSet)
  const names = new Set(own.map(({ name }) => name))
  // Where two data sets have one name, queries use the application's own.
  const others = service.dataSets.descriptions.filter(({ name }) => !names.has(name))
  return { datasets: [...own, ...others].toSorted((a, b) => (a.name < b.name ? -1 : 1)) }
}
