import { Fault } from '../../base/fault.ts'
import { getDataSetTableName } from '../../projections/data-set-table.ts'
import { countrySet } from '../../query/data-set.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { OperatorDataSets, VersionedDataSet } from './operator-data-sets.ts'

/**
 * Returns the data sets of these names for conditions on the application's collections: its own, else the
 * operator's. 404 where one does not exist, or the caller may not know of it.
 */
export function requireDataSets(
  names: readonly string[],
  provided: OperatorDataSets,
  { tenant, mayRead }: { readonly tenant: Tenant; readonly mayRead: boolean },
): ReadonlyMap<string, VersionedDataSet> {
  return new Map(
    names.map((name) => {
      const found = findOwnDataSet(name, tenant, mayRead) ?? provided.get(name)
      if (found === undefined) throw makeNoDataSetFault(tenant.application.app_id, name)
      return [name, found]
    }),
  )
}

export function makeNoDataSetFault(app: string, name: string): Fault {
  return new Fault('DATA_SET_NOT_FOUND', {
    message:
      name === countrySet
        ? `There is no data set that tells countries (ip_country) for ${app}; its owner or the operator can provide one`
        : `There is no data set ${name} for ${app}; its owner or the operator can provide one`,
    details: { app, ...(name !== countrySet && { name }) },
  })
}

function findOwnDataSet(
  name: string,
  tenant: Tenant,
  mayRead: boolean,
): VersionedDataSet | undefined {
  const sets = [...tenant.data.catalog.dataSets.values()]
  const set = sets.find((one) =>
    name === countrySet ? one.kind === 'ip_country' : one.name === name,
  )
  if (set === undefined || !(set.public || mayRead)) return undefined
  return {
    schema: tenant.schema,
    table: getDataSetTableName(set),
    kind: set.kind,
    version: `${set.id} ${set.updated_at}`,
  }
}
