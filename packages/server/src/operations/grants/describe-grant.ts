import type { Grant } from '@tollbase/contract/grants'
import type { Static } from 'typebox'
import { type Catalog, findReadableById } from '../../model/catalog.ts'
import type { GrantDefinition } from '../../model/definitions.ts'

/** Describes a grant as its owner sees it. */
export function describeGrant(catalog: Catalog, grant: GrantDefinition): Static<typeof Grant> {
  const source = findReadableById(catalog, grant.source)
  const { kind, name } = source ?? { kind: 'collection', name: grant.source }
  return {
    id: grant.id,
    grantee: grant.grantee,
    ...{ [kind]: name },
    per_access: grant.per_access,
    created_at: grant.created_at,
  }
}
