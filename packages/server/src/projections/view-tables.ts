import type { AppliedEntry } from '../chain/applier.ts'
import type { Queryable } from '../database/database.ts'
import { sql } from '../database/sql.ts'
import type { Catalog } from '../model/catalog.ts'
import type { StoredView } from '../model/definitions.ts'
import type { PlannedView } from '../model/view-plan.ts'
import type { Resolve } from '../query/join.ts'
import type { CompiledStatement } from '../query/sql-text.ts'
import { getStatePrefix } from '../views/group-state.ts'
import type { ViewPlace } from '../views/view-program.ts'
import { getRowsName, makeRowsTables } from '../views/view-rows.ts'
import {
  buildViewStateTables,
  deleteProgress,
  getPositionAfter,
  insertProgress,
} from './view-state.ts'

/** Creates the tables of a new view, empty, and notes that the view builder is to fill them. */
export async function createViewTables(
  tx: Queryable,
  schema: string,
  { planned, entry }: { planned: PlannedView; entry: AppliedEntry },
): Promise<void> {
  const { view, plan } = planned
  await tx.execute(buildViewStateTables(schema))
  const place = { schema, number: view.number, resolve: () => undefined }
  // A definition that cannot be read any more is replayed all the same; its rows are none.
  const tables = plan?.program.tables(place) ?? makeRowsTables(place)
  for (const statement of tables) await runViewStatement(tx, statement)
  await insertProgress(tx, schema, { view, wanted: getPositionAfter(entry) })
}

/** The names of a view's tables as its definition says; where it cannot be read, that of its rows alone. */
export function listViewTables({ view, plan }: PlannedView): readonly string[] {
  return plan?.program.tableNames(view.number) ?? [getRowsName(view.number)]
}

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

/** Drops the tables of a view that are there: a replay makes none where its definition cannot be read any more. */
export async function dropViewTables(
  tx: Queryable,
  schema: string,
  { view, drop }: { view: StoredView; drop: (table: string) => Promise<void> },
): Promise<void> {
  for (const table of await findViewTables(tx, schema, view)) await drop(table)
  await deleteProgress(tx, schema, view)
}

/** Deletes the rows of a view that stands still, and with them all that its later rows would be computed from. */
export async function deleteViewRows(
  tx: Queryable,
  schema: string,
  view: StoredView,
): Promise<void> {
  for (const table of await findViewTables(tx, schema, view))
    await tx.execute(sql`DELETE FROM ${sql.id(schema, table)}`)
}

/** Makes the place of the view, with the tables of the collections of its own application. */
export function makeViewPlace(schema: string, view: StoredView, catalog: Catalog): ViewPlace {
  const ids = new Map(
    view.reads.filter(({ app }) => app === view.app).map(({ model, id }) => [model, id]),
  )
  const resolve: Resolve = (model) => {
    const collection = catalog.byId.get(ids.get(model) ?? '')
    return collection && { schema, table: collection.table }
  }
  return { schema, number: view.number, resolve }
}

/** Runs one of the statements of a view's program. */
export async function runViewStatement(
  tx: Queryable,
  { text, values }: CompiledStatement,
): Promise<void> {
  await tx.execute(sql.compiled(text, values))
}
