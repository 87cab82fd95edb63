import { Type } from 'typebox'
import { DataSetDefinition } from '../../model/definitions.ts'
import { buildDataSetTable, fillDataSet, getDataSetTableName } from '../data-set-table.ts'
import { dropTable } from './change-table.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'
import { noteNumber } from './draft.ts'

const parseWithEntries = compileBodyParser(
  'data_set',
  Type.Object({ entries: Type.Array(Type.Unknown()) }),
)

export const dataSet: DefinitionRules<'data_set'> = {
  parse: compileBodyParser('data_set', DataSetDefinition),
  set(draft, id, body) {
    draft.dataSets.set(id, body)
    noteNumber(draft, body)
  },
  remove(draft, id) {
    draft.dataSets.delete(id)
  },
  split(id, text) {
    const { entries, ...definition } = parseWithEntries(id, text)
    return { body: JSON.stringify(definition), values: entries }
  },
  // A new version of a data set has a table of its own.
  async drop(tx, { schema, catalog, id }) {
    const old = catalog.dataSets.get(id)
    if (old !== undefined) await dropTable(tx, { schema, table: getDataSetTableName(old) })
  },
  async create(tx, { schema, after, id, values }) {
    const made = after.dataSets.get(id)
    if (made === undefined) return
    const place = { schema, table: getDataSetTableName(made), kind: made.kind }
    await tx.execute(buildDataSetTable(place))
    await fillDataSet(tx, place, values)
  },
}
