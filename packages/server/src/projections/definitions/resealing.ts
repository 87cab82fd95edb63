import type { Catalog } from '../../model/catalog.ts'
import { ResealingDefinition } from '../../model/definitions.ts'
import { addTokenFields } from '../../model/token-fields.ts'
import { listFieldColumns, makeStoredColumns } from '../field-columns.ts'
import { buildCollectionTables } from '../project-records.ts'
import { buildResealedTable, deleteEarlierForms } from '../reseal.ts'
import { buildTokenIndex } from '../sealed-store.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'
import { noteNumber } from './draft.ts'

/** It begins with a table for the records as they will be; the collection's definition names that table at the end. */
export const resealing: DefinitionRules<'resealing'> = {
  parse: compileBodyParser('resealing', ResealingDefinition),
  set(draft, id, body) {
    draft.resealings.set(id, body)
    noteNumber(draft, body)
  },
  remove(draft, id) {
    draft.resealings.delete(id)
  },
  async create(tx, { schema, before, after, id, fieldColumns }) {
    const now = after.resealings.get(id)
    if (now === undefined) return
    const { state, action, from } = now
    if (state === 'copying' && before.resealings.get(id)?.id !== now.id) {
      const { schema_definition } = after.collections.get(id) ?? { schema_definition: null }
      const made = { number: now.number, schema_definition, encrypted: action === 'add' }
      fieldColumns.set(`c_${now.number}`, makeStoredColumns(listFieldColumns(made)))
      for (const statement of [
        ...buildResealedTable(schema),
        ...buildCollectionTables(schema, made),
        // An index over an empty table is made in no time.
        ...(action === 'add' && hasTokenFields(after, id)
          ? [buildTokenIndex(schema, now.number)]
          : []),
      ])
        await tx.execute(statement)
    }
    if (state === 'completed' && action === 'add' && from !== undefined)
      await deleteEarlierForms(tx, schema, { id, before: from })
  },
}

/** Returns whether a collection will have fields with tokens once it is encrypted. */
function hasTokenFields({ collections }: Catalog, id: string): boolean {
  const now = collections.get(id)
  return (
    now !== undefined && addTokenFields({ ...now, encrypted: true }, 0).token_fields !== undefined
  )
}
