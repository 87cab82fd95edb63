import { Fault } from '../../base/fault.ts'
import { dataSetTableName } from '../../projections/data-set-table.ts'
import { countrySet } from '../../query/data-set.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { FoundDataSet, OperatorDataSets } from './operator-data-sets.ts'

/**
 * The data sets of these names for conditions on the application's collections: its own, else the operator's. 404
 * where there is none, or none that the caller may know of.
 */
export function findDataSets(
  names: readonly string[],
  provided: OperatorDataSets,
  { tenant, mayRead }: { readonly tenant: Tenant; readonly mayRead: boolean },
): ReadonlyMap<string, FoundDataSet> {
  return new Map(
    names.map((name) => {
      const found = ownDataSet(name, tenant, mayRead) ?? provided.get(name)
      if (found === undefined) throw noSuchDataSet(tenant.application.app_id, name)
      return [name, found]
    }),
  )
}

export function noSuchDataSet(app: string, name: string): Fault {
  return new Fault('DATA_SET_NOT_FOUND', {
    message:
      name === countrySet
        ? `There is no data set that tells countries (ip_country) for ${app}; its owner or the operator can provide one`
        : `There is no data set ${name} for ${app}; its owner or the operator can provide one`,
    details: { app, ...(name !== countrySet && { name }) },
  })
}

function ownDataSet(name: string, tenant: Tenant, mayRead: boolean): FoundDataSet | undefined {
  const sets = [...tenant.data.catalog.dataSets.values()]
  const set = sets.find((one) =>
    name === countrySet ? one.kind === 'ip_country' : one.name === name,
  )
  if (set === undefined || !(set.public || mayRead)) return undefined
  return {
    schema: tenant.schema,
    table: dataSetTableName(set),
    kind: set.kind,
    version: `${set.id} ${set.updated_at}`,
  }
}
