import type { Queryable } from '../database/queryable.ts'
import { sql } from '../database/sql.ts'

/** Lists the tables of an application's collections of blobs, without opening it; undefined where it has no schema yet. */
export async function listBlobTables(
  database: Queryable,
  schema: string,
): Promise<string[] | undefined> {
  const [place] = await database.query<{ found: boolean }>(
    sql`SELECT to_regclass(${`${schema}.definition`}) IS NOT NULL AS found`,
  )
  if (place?.found !== true) return undefined
  const rows = await database.query<{ number: string }>(sql`
    SELECT body::json ->> 'number' AS number FROM ${sql.id(schema, 'definition')}
    WHERE kind = 'collection' AND position('"collection_type":"blob"' IN body) > 0`)
  return rows.map(({ number }) => `c_${number}`)
}
