import { emptyCatalog } from '../../model/catalog.ts'
import { EncryptionDefinition } from '../../model/definitions.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'

/** An application has one, or none. */
export const encryption: DefinitionRules<'encryption'> = {
  parse: compileBodyParser('encryption', EncryptionDefinition),
  set(draft, _, body) {
    draft.encryption = body
  },
  remove(draft) {
    draft.encryption = emptyCatalog.encryption
  },
}
