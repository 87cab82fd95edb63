import { buildChainTables } from '../../chain/tables.ts'
import type { Database, Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import type { Projection } from '../../projections/projection.ts'

/** Makes a chain's schema whole, or leaves it alone where it is there. */
export async function createSchema(
  database: Database,
  schema: string,
  projections: readonly Projection[],
): Promise<void> {
  if (await hasSchema(database, schema)) return
  const create = async (tx: Queryable) => {
    // A no-op on plain PostgreSQL; on Citus it makes the schema a shard that can be moved.
    await tx.execute(sql`SET LOCAL citus.enable_schema_based_sharding = on`)
    await tx.execute(sql`CREATE SCHEMA ${sql.id(schema)}`)
    for (const statement of buildChainTables(schema)) await tx.execute(statement)
    for (const statement of projections.flatMap((one) => one.tables(schema)))
      await tx.execute(statement)
  }
  try {
    await database.transaction(create)
  } catch (error) {
    // Nobody has the lease yet, so another process may have made it, whole, since the look.
    if (!(await hasSchema(database, schema))) throw error
  }
}

export async function hasSchema(database: Database, schema: string): Promise<boolean> {
  const found = await database.query(
    sql`SELECT schema_name FROM information_schema.schemata WHERE schema_name = ${schema}`,
  )
  return found.length > 0
}
