import { listRemovals, listReplacements } from '../../model/dependents.ts'
import { listRuleRemovals } from '../../model/orphaned-rules.ts'
import { define } from '../../services/applications/define.ts'
import type { Operation } from '../operation.ts'
import { requireView } from './require-view.ts'

export const deleteView: Operation<'deleteView', 'tenants'> = async (
  { service },
  { params, body },
) => {
  const tenant = await service.tenants.load(params.app)
  return tenant.definitions.run(async () => {
    const { view } = requireView(tenant, params.name)
    const { catalog } = tenant.data
    // A pending replacement of the view is deleted with it.
    const ids = [view, ...listReplacements(catalog, view.id)].map(({ id }) => id)
    const isNameFreed = !catalog.views.has(view.replaces ?? '')
    const removals = [
      ...listRemovals(catalog, { ids, name: view.name, isNameFreed }, body.cascade === true),
      ...ids.map((id) => ({ kind: 'view', id, body: undefined }) as const),
    ]
    await define(tenant, [...removals, ...listRuleRemovals(catalog, removals)])
    return { success: true, message: `View ${view.name} is deleted` }
  })
}
