import type { Catalog } from '../../model/catalog.ts'
import type { StoredView } from '../../model/definitions.ts'
import type { ViewPlan } from '../../model/view-plan.ts'
import { makeViewPlace } from '../../projections/view-tables.ts'
import type { Resolve } from '../../query/join.ts'
import { awaitTurnAfterSteps, limitSteps } from '../../query/steps.ts'

/**
 * Refuses a view of which too much would have to be written: its statements are written again for each change and each
 * audit, in one turn of the event loop.
 */
export async function refuseLongView(
  { schema, catalog }: { readonly schema: string; readonly catalog: Catalog },
  { view, plan: { program } }: { readonly view: StoredView; readonly plan: ViewPlan },
): Promise<void> {
  const place = makeViewPlace(schema, view, catalog)
  // Those of other applications have other names, which are as long.
  const resolve: Resolve = (model) => place.resolve(model) ?? { schema, table: 'records' }
  const at = () => 0
  limitSteps(() => program.fill({ ...place, resolve }, at))
  await awaitTurnAfterSteps()
  limitSteps(() => program.recompute({ ...place, resolve }, at))
  await awaitTurnAfterSteps()
}
