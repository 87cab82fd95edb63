import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import { getStatePrefix } from '../views/group-state.ts'
import { getRowsName } from '../views/view-rows.ts'

/**
 * Finds the names of a view's tables that are there, that of its rows first, whatever version of the service made
 * them: a definition that cannot be read any more names none, and one that is replayed since had none made.
 */
export async function findViewTables(
  database: Queryable,
  schema: string,
  { number }: { readonly number: number },
): Promise<readonly string[]> {
  const rows = getRowsName(number)
  const tables = await database.query<{ name: string }>(sql`
    SELECT class.relname::text AS name FROM pg_catalog.pg_class AS class
    JOIN pg_catalog.pg_namespace AS namespace ON namespace.oid = class.relnamespace
    WHERE namespace.nspname = ${schema} AND class.relkind IN ('r', 'p')
      AND (class.relname = ${rows} OR class.relname::text ^@ ${getStatePrefix(number)})
    ORDER BY class.relname <> ${rows}, class.relname`)
  return tables.map(({ name }) => name)
}
