import { PricingDefinition } from '../../model/definitions.ts'
import { compileBodyParser, type DefinitionRules } from './definition-rules.ts'

/** An application has one, or none. */
export const pricing: DefinitionRules<'pricing'> = {
  parse: compileBodyParser('pricing', PricingDefinition),
  set(draft, _, body) {
    draft.pricing = body
  },
  remove(draft) {
    draft.pricing = { rules: [] }
  },
}
