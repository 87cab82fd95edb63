import { sql } from '../../database/sql.ts'
import { CollectionDefinition } from '../../model/definitions.ts'
import { buildCollectionTables } from '../project-records.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'
import { noteNumber, removeIndexes } from './draft.ts'
import { dropTable } from './drop-from-table.ts'

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
    await dropTable(tx, { schema, table: `c_${removed.number}` })
    await tx.execute(
      sql`DELETE FROM ${sql.id(schema, 'collection_stats')} WHERE collection = ${id}`,
    )
  },
  async create(tx, { schema, before, after, id }) {
    const made = after.collections.get(id)
    if (made === undefined || before.collections.has(id)) return
    for (const statement of buildCollectionTables(schema, made)) await tx.execute(statement)
  },
}
