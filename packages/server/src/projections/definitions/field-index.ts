import { type SqlStatement, sql } from '../../database/sql.ts'
import { findReadableById } from '../../model/catalog.ts'
import { IndexDefinition } from '../../model/definitions.ts'
import { findExtension } from '../../model/index-kinds.ts'
import { buildCreateIndex, getIndexName, tryCreateIndex } from '../index-ddl.ts'
import { supersedeAll } from '../project-records.ts'
import { distrustViews } from '../view-readers.ts'
import { changeTable } from './change-table.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'
import { noteNumber } from './draft.ts'
import { isSmall } from './is-small.ts'

export const index: DefinitionRules<'index'> = {
  parse: compileBodyParser('index', IndexDefinition),
  set(draft, id, body) {
    draft.indexes.set(id, body)
    noteNumber(draft, body)
  },
  remove(draft, id) {
    draft.indexes.delete(id)
  },
  findReadable: ({ indexes }, id) => indexes.get(id)?.collection,
  async drop(tx, { schema, catalog, id }) {
    const old = catalog.indexes.get(id)
    const indexed = old && findReadableById(catalog, old.collection)
    if (old === undefined || indexed === undefined) return
    await changeTable(tx, { schema, table: indexed.table }, buildDropIndex(schema, old))
  },
  async create(tx, { schema, after, id, built, hasIndexesLater }) {
    const made = after.indexes.get(id)
    const indexed = made && findReadableById(after, made.collection)
    if (made === undefined || indexed === undefined) return
    // A number can come again after the last index was deleted; the rest of a build that was broken off is not this
    // index.
    await tx.execute(buildDropIndex(schema, made))
    // An extension may be missing, which must not keep writes waiting. The size of a view is not counted.
    const isLater =
      hasIndexesLater ||
      findExtension(made.index_type) !== undefined ||
      indexed.kind === 'view' ||
      !(await isSmall(tx, schema, indexed.id))
    if (!made.unique && isLater) return
    const statement = buildCreateIndex({ schema, collection: indexed }, made)
    if (await tryCreateIndex(tx, statement)) built.add(made.number)
    if (!made.unique) return
    await supersedeAll(tx, { schema, collection: indexed, fields: made.fields })
    await distrustViews(tx, schema, { catalog: after, collection: indexed.id })
  },
}

function buildDropIndex(schema: string, dropped: { readonly number: number }): SqlStatement {
  return sql`DROP INDEX IF EXISTS ${sql.id(schema, getIndexName(dropped))}`
}
