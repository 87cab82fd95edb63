import type { DefinitionKind } from '../../model/definitions.ts'
import { collection } from './collection.ts'
import { dataSet } from './data-set.ts'
import type { DefinitionRules } from './definition-rules.ts'
import { encryption } from './encryption.ts'
import { index } from './field-index.ts'
import { grant } from './grant.ts'
import { migration } from './migration.ts'
import { pricing } from './pricing.ts'
import { query } from './query.ts'
import { relation } from './relation.ts'
import { resealing } from './resealing.ts'
import { view } from './view.ts'

/** The kinds of definitions. */
export const kinds: { readonly [K in DefinitionKind]: DefinitionRules<K> } = {
  collection,
  index,
  pricing,
  relation,
  migration,
  view,
  grant,
  data_set: dataSet,
  query,
  encryption,
  resealing,
}

/** Returns false for a kind that this version of the service does not know, which changes nothing. */
export function isKnownKind(kind: string): kind is DefinitionKind {
  return Object.hasOwn(kinds, kind)
}
