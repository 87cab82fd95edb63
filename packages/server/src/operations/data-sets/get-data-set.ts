import type { Tenant } from '../../services/applications/tenants.ts'
import type { OperatorDataSets } from '../../services/data-sets/operator-data-sets.ts'
import { makeNoDataSetFault } from '../../services/data-sets/require-data-sets.ts'
import type { Operation } from '../operation.ts'
import { describeDataSet } from './describe-data-set.ts'

export const getDataSet: Operation<'getDataSet', 'tenants' | 'dataSets'> = async (
  { service },
  { params },
) => requireDataSet(service.dataSets, await service.tenants.load(params.app), params.name)

/** The application's own, else the operator's, or 404. */
export function requireDataSet(dataSets: OperatorDataSets, tenant: Tenant, name: string) {
  const own = [...tenant.data.catalog.dataSets.values()].find((one) => one.name === name)
  if (own !== undefined) return describeDataSet(own)
  const provided = dataSets.descriptions.find((one) => one.name === name)
  if (provided === undefined) throw makeNoDataSetFault(tenant.application.app_id, name)
  return provided
}
