import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { PlannedView } from '../model/view-plan.ts'
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

/**
 * Makes the tables beside a view's rows anew, empty, as its definition asks for them now: another version of the service
 * may have made others, and a replay none where it could not read the definition. A definition that cannot be read has
 * none.
 */
export async function replaceStateTables(
  tx: Queryable,
  schema: string,
  { view, plan }: PlannedView,
): Promise<void> {
  const [, ...others] = await findViewTables(tx, schema, view)
  for (const table of others) await tx.execute(sql`DROP TABLE ${sql.id(schema, table)}`)
  const place = { schema, number: view.number, resolve: () => undefined }
  for (const { text, values } of plan?.program.stateTables(place) ?? [])
    await tx.execute(sql.compiled(text, values))
}
