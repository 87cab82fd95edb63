import { RelationDefinition } from '../../model/definitions.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'

export const relation: DefinitionRules<'relation'> = {
  parse: compileBodyParser('relation', RelationDefinition),
  set(draft, id, body) {
    draft.relations.set(id, body)
  },
  remove(draft, id) {
    draft.relations.delete(id)
  },
}
