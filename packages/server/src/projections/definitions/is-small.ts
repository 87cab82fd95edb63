import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'

/** Work on a whole table of up to this size is done at once; on any other beside the writes, which must not wait. */
const atOnceMax = { versions: 2_000, bytes: 4 * 1024 * 1024 }

/** Returns true if the applier can work on the whole table of a collection without keeping writes waiting. */
export async function isSmall(tx: Queryable, schema: string, collection: string): Promise<boolean> {
  const large = await tx.query(sql`
    SELECT collection FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${collection}
      AND (versions > ${atOnceMax.versions}::int8 OR bytes > ${atOnceMax.bytes}::int8)`)
  return large.length === 0
}
