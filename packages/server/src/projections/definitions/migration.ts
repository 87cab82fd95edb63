import { MigrationDefinition } from '../../model/definitions.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'

export const migration: DefinitionRules<'migration'> = {
  parse: compileBodyParser('migration', MigrationDefinition),
  set(draft, id, body) {
    draft.migrations.set(id, body)
  },
  remove(draft, id) {
    draft.migrations.delete(id)
  },
}
