import { StoredView } from '../../model/definitions.ts'
import { planStoredView } from '../../model/view-plan.ts'
import { createViewTables, dropViewTables } from '../view-tables.ts'
import { dropTable } from './change-table.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'
import { noteNumber, removeIndexes } from './draft.ts'

export const view: DefinitionRules<'view'> = {
  parse: compileBodyParser('view', StoredView),
  async set(draft, id, body) {
    draft.views.set(id, await planStoredView(body))
    noteNumber(draft, body)
  },
  remove(draft, id) {
    draft.views.delete(id)
    removeIndexes(draft, id)
  },
  findReadable: (_, id) => id,
  async drop(tx, { schema, catalog, id }) {
    const planned = catalog.views.get(id)
    if (planned === undefined) return
    const { view } = planned
    await dropViewTables(tx, schema, { view, drop: (table) => dropTable(tx, { schema, table }) })
  },
  async create(tx, { schema, after, id, entry }) {
    const planned = after.views.get(id)
    if (planned !== undefined) await createViewTables(tx, schema, { planned, entry })
  },
}
