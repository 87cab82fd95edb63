import { Fault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import type { StoredView } from '../../model/definitions.ts'
import { refuseNeeded } from '../../model/dependents.ts'
import { isWhole, readProgress } from '../../projections/view-state.ts'
import { define } from '../applications/define.ts'
import type { Tenant } from '../applications/tenants.ts'

/**
 * Deletes the view that a filled one replaces, unless the filled one was given up, or has stopped, before its turn came.
 * Returns why the view must stay, where something came to need it meanwhile: the definition of that was refused, unless
 * an earlier version of the service took it in, or a query names the view by its id.
 */
export async function deleteReplaced(
  database: Database,
  tenant: Tenant,
  { id, name, replaces }: StoredView,
): Promise<Fault | undefined> {
  if (replaces === undefined || !tenant.data.catalog.views.has(replaces)) return undefined
  return tenant.definitions.run(async () => {
    const { catalog } = tenant.data
    if (!catalog.views.has(id) || !catalog.views.has(replaces)) return undefined
    const progress = await readProgress(database, tenant.schema)
    if (!isWhole(progress.get(id))) return undefined
    try {
      refuseNeeded(catalog, name, [replaces])
    } catch (error) {
      if (error instanceof Fault) return error
      throw error
    }
    await define(tenant, [{ kind: 'view', id: replaces, body: undefined }])
    return undefined
  })
}
