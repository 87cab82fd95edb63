import { Fault } from '../../base/fault.ts'
import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import type { StoredView } from '../../model/definitions.ts'
import { definitionReserve } from '../../model/quota.ts'
import { listViewTables } from '../../projections/view-tables.ts'
import type { Tenant } from '../applications/tenants.ts'

/** A view and its bytes on disk, indexes included. */
export type ViewSize = { readonly view: StoredView; readonly bytes: number }

/**
 * Lists the views of an application, the largest first, where together they take more than they may; otherwise
 * none.
 */
export async function listOversized(
  database: Queryable,
  tenant: Tenant,
  bytesMax: number | null,
): Promise<readonly ViewSize[]> {
  if (bytesMax === null) return []
  const sizes = await readSizes(database, tenant)
  const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0)
  // However little the records may take, the tables of a small view fit.
  if (total <= bytesMax + definitionReserve.bytes) return []
  return sizes.toSorted((a, b) => b.bytes - a.bytes)
}

/**
 * Makes the fault that is reported as the reason why a view is stale. It tells no sizes where a view is made of another
 * application's records, which may be sold: its definition can make the size depend on any value.
 */
export function makeViewTooLargeFault(sizes: readonly ViewSize[], own: StoredView): Fault {
  const total = sizes.reduce((sum, { bytes }) => sum + bytes, 0)
  const bytes = sizes.find(({ view }) => view.id === own.id)?.bytes ?? 0
  const isOwn = sizes.every(({ view }) => view.reads.every(({ app }) => app === view.app))
  const much = isOwn
    ? `${total} bytes, of which this view takes ${bytes}; that is more than the application's quota of bytes`
    : "more than the application's quota of bytes"
  return new Fault('QUOTA_EXCEEDED', {
    message: `the views of this application take ${much}. Replace the view by one with fewer rows, delete other views, or ask the operator for a larger quota`,
  })
}

/**
 * Reads the sizes of the views, rows that are still being written included. Where Citus has spread a table the
 * coordinator holds an empty shell, so there the limit holds nothing back; citus_total_relation_size would.
 */
async function readSizes(
  database: Queryable,
  { schema, data: { catalog } }: Tenant,
): Promise<ViewSize[]> {
  const planned = [...catalog.views.values()]
  const names = planned.flatMap((one) => listViewTables(one))
  const rows = await database.query<{ name: string; bytes: bigint | null }>(sql`
    SELECT class.relname::text AS name, pg_catalog.pg_total_relation_size(class.oid) AS bytes
    FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = ${schema} AND class.relname = ANY(${names}::text[])`)
  // A table that is dropped in this moment has no size any more.
  const bytes = new Map(rows.map((row) => [row.name, Number(row.bytes ?? 0)]))
  return planned.map((one) => ({
    view: one.view,
    bytes: listViewTables(one).reduce((sum, table) => sum + (bytes.get(table) ?? 0), 0),
  }))
}
