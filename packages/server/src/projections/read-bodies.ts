import type { Queryable } from '../database/database.ts'
import { type SqlStatement, sql } from '../database/sql.ts'

/** Rows that are read at once at most, and bytes of their texts after which no other begins. */
const readAtOnce = { rows: 1_000, bytes: 256 * 1024 }

type BodyRow = { readonly id: string; readonly place: bigint; readonly body: string }

/** Reads the texts of a table in the order of its key, which is one column of texts, a page at a time. */
export async function* readBodies(
  database: Queryable,
  { table, key, place }: Readonly<Record<'table' | 'key' | 'place', SqlStatement>>,
): AsyncGenerator<BodyRow, void> {
  const { rows, bytes } = readAtOnce
  for (let after = ''; ; ) {
    const page = await database.query<BodyRow & { readonly found: bigint }>(sql`
      SELECT id, place, body, found FROM (
        SELECT id, place, body, count(*) OVER () AS found,
          sum(octet_length(body)) OVER (ORDER BY id) - octet_length(body) AS before
        FROM (
          SELECT ${key} AS id, ${place} AS place, body FROM ${table}
          WHERE ${key} > ${after} ORDER BY ${key} LIMIT ${rows}::int8) AS next
      ) AS page WHERE before < ${bytes}::int8 ORDER BY id`)
    yield* page
    const last = page.at(-1)
    if (last === undefined || (last.found < rows && page.length === Number(last.found))) return
    after = last.id
  }
}
