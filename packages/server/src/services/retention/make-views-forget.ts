import { awaitWithin } from '../../base/await-within.ts'
import { sql } from '../../database/sql.ts'
import type { StoredView } from '../../model/definitions.ts'
import type { Expiry } from '../../projections/expiry.ts'
import { listReaders } from '../../projections/view-readers.ts'
import { distrust, readProgress } from '../../projections/view-state.ts'
import { deleteViewRows } from '../../projections/view-tables.ts'
import { getSchemaName, type Tenant } from '../applications/tenants.ts'
import { viewBuildMs } from '../views/build-view.ts'
import type { ForgetPorts } from './forget-ports.ts'

/** Views of one application that read what has expired. */
type Readers = { readonly tenant: Tenant; readonly views: readonly StoredView[] }

/**
 * Has the views that may hold expired records made anew, those of other applications too. A view that stands still
 * (its grant is gone, its definition fails, its application is archived) is emptied: it would show for ever what is gone.
 * An application that cannot be opened keeps only its own views waiting: it throws when all others have forgotten.
 */
export async function makeViewsForget(
  ports: ForgetPorts,
  source: Tenant,
  expiries: readonly Expiry[],
): Promise<void> {
  const collections = new Set(expiries.map(({ collection }) => collection))
  const { found, problem } = await listAllReaders(ports, source, collections)
  for (const readers of found) {
    const { tenant, views } = readers
    const { app_id: app } = tenant.application
    const ids = views.map(({ id }) => id)
    // Those of the application itself were distrusted with the rows, in one transaction.
    if (tenant !== source) await distrust(ports.database, tenant.schema, { views: ids })
    ports.viewBuilder.notice(app)
    const settled = Promise.all(ids.map((id) => ports.viewBuilder.whenDone(app, id)))
    const { world } = ports
    await awaitWithin(settled, { world, ms: viewBuildMs, otherwise: undefined })
    await deleteStaleRows(ports, readers)
  }
  if (problem !== undefined) throw problem
}

async function listAllReaders(
  { database, tenants }: ForgetPorts,
  source: Tenant,
  collections: ReadonlySet<string>,
): Promise<{ readonly found: Readers[]; readonly problem: unknown }> {
  const { app_id: app } = source.application
  const found: Readers[] = []
  let problem: unknown
  for (const other of tenants.system.applications.list()) {
    const schema = getSchemaName(other.number)
    const isSource = other.app_id === app
    if (!isSource && !(await mayRead(database, schema, collections))) continue
    const opened = isSource ? Promise.resolve(source) : tenants.loadEvenArchived(other.app_id)
    const tenant = await opened.catch((error: unknown) => {
      problem ??= error
    })
    if (tenant === undefined) continue
    const views = listReaders(tenant.data.catalog, { app, collections })
    if (views.length > 0) found.push({ tenant, views })
  }
  return { found, problem }
}

/** Returns whether some view of an application names one of the collections, without opening it. */
async function mayRead(
  database: ForgetPorts['database'],
  schema: string,
  collections: ReadonlySet<string>,
): Promise<boolean> {
  const [table] = await database.query<{ found: boolean }>(
    sql`SELECT to_regclass(${`${schema}.definition`}) IS NOT NULL AS found`,
  )
  if (table?.found !== true) return false
  const views = await database.query(sql`
    SELECT definition.id FROM ${sql.id(schema, 'definition')} AS definition, unnest(${[...collections]}::text[]) AS one (id)
    WHERE kind = 'view' AND position(one.id IN body) > 0 LIMIT 1`)
  return views.length > 0
}

/** Views of an archived application are made anew when it comes back. */
async function deleteStaleRows(
  { database }: ForgetPorts,
  { tenant, views }: Readers,
): Promise<void> {
  const isArchived = tenant.application.status === 'archived'
  const progress = await readProgress(database, tenant.schema)
  const still = views.filter(({ id }) => isArchived || progress.get(id)?.status === 'stale')
  for (const { id } of still) {
    const view = tenant.data.catalog.views.get(id)?.view
    if (view !== undefined)
      await database.transaction((tx) => deleteViewRows(tx, tenant.schema, view))
  }
}
