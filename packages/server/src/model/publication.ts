import type { PublishChoice } from '@tollbase/contract/applications'
import type { Entry } from '@tollbase/verify/entry'
import { getOwnValue, isRecord } from '../base/is-record.ts'
import type { ApplicationRecord } from './application.ts'
import type { Catalog } from './catalog.ts'
import type { DefinitionKind } from './definitions.ts'
import { getReadPrice, isFree } from './find-price.ts'
import { resolveReadLevel } from './read-level.ts'

/** Returns what an application wants to be published of its log on other chains. */
export function getPublishChoice({ publish }: ApplicationRecord): PublishChoice {
  return publish ?? 'roots'
}

/** Returns true where blocks of the application are to be published, with some of their entries or all. */
export function isPublishing(application: ApplicationRecord): boolean {
  const choice = getPublishChoice(application)
  return application.status === 'active' && (choice === 'ciphertext' || choice === 'plaintext')
}

/** Types of entries that say what was done and hold no content. */
const bareTypes: ReadonlySet<string> = new Set(['view_refresh', 'expire', 'erase'])

/**
 * A data set has its content, and a migration that failed the keys of records, whoever may read these. A grant has what
 * was agreed on with another application.
 */
const publishedKinds: { readonly [K in DefinitionKind]: boolean } = {
  collection: true,
  index: true,
  pricing: true,
  relation: true,
  migration: false,
  view: true,
  grant: false,
  data_set: false,
  query: true,
  encryption: true,
  resealing: true,
}

/**
 * Returns true if the bytes of an entry are published; otherwise only its hash is. Sealed records are always published.
 * Other records are published only with `plaintext`, and only if everybody may read the whole collection for nothing at
 * this moment. An entry of an unknown type is not published.
 */
export function isPublished(
  catalog: Catalog,
  choice: PublishChoice,
  { header: { type, kind, sealed, collection }, body }: Entry,
): boolean {
  if (choice !== 'ciphertext' && choice !== 'plaintext') return false
  if (type === 'definition')
    return (
      getOwnValue(publishedKinds, String(kind)) === true && !hasHiddenMember(String(kind), body)
    )
  if (bareTypes.has(type)) return true
  if (type !== 'record' && type !== 'reseal') return false
  return sealed === true || (choice === 'plaintext' && isForEverybody(catalog, collection))
}

/**
 * Members that hide the definition which has them: the URL of a seller's own API may have a key in its query, and the
 * price of an index has the wallet that earns by it, and the shares.
 */
const hiddenMembers: ReadonlyMap<string, string> = new Map([
  ['collection', 'api'],
  ['index', 'price'],
])

function hasHiddenMember(kind: string, body: string): boolean {
  const member = hiddenMembers.get(kind)
  if (member === undefined || body === '') return false
  const definition: unknown = JSON.parse(body)
  return isRecord(definition) && definition[member] !== undefined
}

function isForEverybody(catalog: Catalog, id: unknown): boolean {
  const collection = catalog.byId.get(String(id))
  if (collection === undefined || isBeingChanged(catalog, collection.id)) return false
  const { policy } = collection
  return (
    resolveReadLevel(catalog, collection) === 'public' &&
    isFree(getReadPrice(catalog, collection)) &&
    policy.offered.select === undefined &&
    !policy.unknownShape
  )
}

/** Returns true while the encryption of a collection changes. */
function isBeingChanged({ resealings }: Catalog, id: string): boolean {
  const state = resealings.get(id)?.state
  return state !== undefined && state !== 'completed'
}
