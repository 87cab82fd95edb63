import type { UsedFields } from '../query/join.ts'
import type { Catalog } from './catalog.ts'
import { isEncrypted } from './encrypted-collections.ts'
import { getReadPrice, isFree } from './find-price.ts'
import { resolveOwnSources } from './own-sources.ts'
import { findHiddenUse, type ReadLevel } from './policy.ts'
import type { Collection, Readable, View } from './readable.ts'
import { anyFields } from './view-plan.ts'

/**
 * Returns the read level of a collection or view now: the level that its owner set. Where none is set, a collection
 * is for its own keys until it has a price, which opens it to buyers; a view is as strict as the strictest of its
 * sources. A view never publishes private data, whatever its own level.
 */
export function resolveReadLevel(catalog: Catalog, readable: Readable): ReadLevel {
  const { policy } = readable
  if (isEncrypted(readable)) return 'private'
  if (readable.kind === 'collection') return policy.read ?? getLevelByPrice(catalog, readable)
  const { view } = readable
  const sources = listSourceLevels(catalog, readable)
  if (policy.read === undefined) return getStrictest([view.least_read ?? 'public', ...sources])
  return policy.read === 'public' && sources.includes('private') ? 'private' : policy.read
}

/** Returns true if strangers may read it, free or by paying. */
export function isOpen(catalog: Catalog, readable: Readable): boolean {
  return resolveReadLevel(catalog, readable) === 'public'
}

/**
 * Returns the least level that a new view must keep, whatever becomes of its source: the level that the source's
 * owner set. An own source without a level counts as public here, because its level may change with its price and
 * is computed at each read; another application's source is judged once, now.
 */
export function getLeastReadLevel(
  catalog: Catalog,
  source: Readable,
  use: { readonly isOwn: boolean; readonly used: UsedFields | undefined },
): ReadLevel {
  const isUnsaid = source.kind === 'collection' && source.policy.read === undefined
  const read = isUnsaid && use.isOwn ? 'public' : resolveReadLevel(catalog, source)
  return getStrictest([read, getUseLevel(source, use.used)])
}

function getLevelByPrice(catalog: Catalog, collection: Collection): ReadLevel {
  return isFree(getReadPrice(catalog, collection)) ? 'key' : 'public'
}

/**
 * Lists the levels of sources of the view's own application; those of other applications were judged when the view
 * was made. A source that is gone may have been private.
 */
function listSourceLevels(catalog: Catalog, { view, plan }: View): readonly ReadLevel[] {
  const sources = resolveOwnSources(catalog, view)
  if (sources === 'gone') return ['private']
  return sources.map(({ model, readable }) => {
    const used = plan?.uses.get(model) ?? anyFields
    return getStrictest([resolveReadLevel(catalog, readable), getUseLevel(readable, used)])
  })
}

/**
 * Others may not use fields that a source does not offer, so such a use is for keys; an unknown use is not judged.
 */
function getUseLevel({ policy }: Readable, used: UsedFields | undefined): ReadLevel {
  return used !== undefined && findHiddenUse(policy, used) !== undefined ? 'key' : 'public'
}

/** From the least strict to the strictest. */
const strictness = ['public', 'key', 'private'] as const

export function getStrictest(levels: readonly ReadLevel[]): ReadLevel {
  const most = Math.max(0, ...levels.map((level) => strictness.indexOf(level)))
  return strictness[most] ?? 'private'
}
