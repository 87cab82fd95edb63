import type { Queryable } from '../../database/database.ts'
import { sql } from '../../database/sql.ts'
import { CollectionDefinition } from '../../model/definitions.ts'
import {
  buildAddFieldColumns,
  listFieldColumns,
  listMissingColumns,
  makeStoredColumns,
  readFieldColumns,
  type StoredColumns,
} from '../field-columns.ts'
import { changePlaintextTable } from '../plaintext-table.ts'
import { buildCollectionTables } from '../project-records.ts'
import { buildTokenIndex, dropTokenIndex } from '../sealed-store.ts'
import { changeTable, dropTable } from './change-table.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'
import { noteNumber, removeIndexes } from './draft.ts'
import { isSmall } from './is-small.ts'

export const collection: DefinitionRules<'collection'> = {
  parse: compileBodyParser('collection', CollectionDefinition),
  set(draft, id, body) {
    draft.collections.set(id, body)
    noteNumber(draft, body)
  },
  remove(draft, id) {
    draft.collections.delete(id)
    removeIndexes(draft, id)
  },
  findReadable: (_, id) => id,
  async drop(tx, { schema, catalog, id, isRemoval }) {
    const removed = isRemoval ? catalog.collections.get(id) : undefined
    if (removed === undefined) return
    await changePlaintextTable(tx, schema, { before: removed, after: undefined })
    await dropTable(tx, { schema, table: `c_${removed.number}` })
    await tx.execute(
      sql`DELETE FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${id}`,
    )
  },
  async create(tx, { schema, before, after, id, fieldColumns }) {
    const made = after.collections.get(id)
    if (made === undefined) return
    const old = before.collections.get(id)
    if (old !== undefined && old.number !== made.number)
      await replaceTable(tx, schema, { id, from: old.number, to: made.number })
    const table = `c_${made.number}`
    if (old === undefined) {
      for (const statement of buildCollectionTables(schema, made)) await tx.execute(statement)
      fieldColumns.set(table, makeStoredColumns(listFieldColumns(made)))
    } else if (old.schema_definition !== made.schema_definition)
      fieldColumns.set(table, await addFieldColumns(tx, { schema, table, made }))
    if (made.token_fields !== undefined) await tx.execute(buildTokenIndex(schema, made.number))
    else if (old?.token_fields !== undefined) await tx.execute(dropTokenIndex(schema, made.number))
    await changePlaintextTable(tx, schema, { before: old, after: made })
  },
}

/**
 * Gives a small table the columns of the fields that are declared now; a large one gets them beside the writes, which
 * cannot wait until it is written anew (services/collections/column-filler.ts). Columns of other fields stay, so that no
 * statement under way names one that is gone. Gives all that the table has.
 */
async function addFieldColumns(
  tx: Queryable,
  {
    schema,
    table,
    made,
  }: {
    readonly schema: string
    readonly table: string
    readonly made: CollectionDefinition
  },
): Promise<StoredColumns> {
  const read = async () => (await readFieldColumns(tx, schema, table)).get(table) ?? new Map()
  const stored = await read()
  const missing = listMissingColumns(made, stored)
  if (missing.length === 0 || !(await isSmall(tx, schema, made.id))) return stored
  await changeTable(tx, { schema, table }, buildAddFieldColumns({ schema, table }, missing))
  // Another one may have added a column of that name before the table was locked.
  return read()
}

/** The records are all in the other table now; the counts are those of its rows. */
async function replaceTable(
  tx: Queryable,
  schema: string,
  { id, from, to }: { readonly id: string; readonly from: number; readonly to: number },
): Promise<void> {
  await dropTable(tx, { schema, table: `c_${from}` })
  await tx.execute(sql`
    INSERT INTO ${sql.id(schema, 'collection_stats')} (collection, documents, bytes, versions)
    SELECT ${id}::text, count(*) FILTER (WHERE superseded_by IS NULL AND NOT deleted),
      coalesce(sum(octet_length(body)) FILTER (WHERE superseded_by IS NULL AND NOT deleted), 0)::int8, count(*)
    FROM ${sql.id(schema, `c_${to}`)}
    ON CONFLICT (collection) DO UPDATE SET
      documents = excluded.documents, bytes = excluded.bytes, versions = excluded.versions`)
}
