import { GrantDefinition } from '../../model/definitions.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'

export const grant: DefinitionRules<'grant'> = {
  parse: compileBodyParser('grant', GrantDefinition),
  set(draft, id, body) {
    draft.grants.set(id, body)
  },
  remove(draft, id) {
    draft.grants.delete(id)
  },
}
