import type { UsedFields } from '../query/join.ts'
import { type Catalog, readableOfId } from './catalog.ts'
import type { CollectionState, StoredView } from './definitions.ts'
import { hiddenUse, type Read } from './policy.ts'
import { isFree, readPriceOf } from './price.ts'

/**
 * Who reads a collection or a view as things stand: what its owner said. Where he said nothing a collection is for its
 * own keys until it has a price, which opens it to buyers; a view is as strict as the strictest of its sources. Private
 * data is not published by a view either, whatever that says of itself.
 */
export function readOf(catalog: Catalog, collection: CollectionState): Read {
  const { policy, view } = collection
  if (view === undefined) return policy.read ?? openedByPrice(catalog, collection)
  const sources = levelsOfSources(catalog, view)
  if (policy.read === undefined) return strictest([view.least_read ?? 'public', ...sources])
  return policy.read === 'public' && sources.includes('private') ? 'private' : policy.read
}

/** Whether strangers may read it, free or by paying. */
export function isOpen(catalog: Catalog, collection: CollectionState): boolean {
  return readOf(catalog, collection) === 'public'
}

/**
 * How strict a new view must stay, whatever becomes of its source: what the owner of that said. Of an own source of
 * which nothing was said the answer may change with its price, so it is asked at each read; another application's is
 * judged once, now.
 */
export function leastReadOf(
  catalog: Catalog,
  source: CollectionState,
  use: { readonly isOwn: boolean; readonly used: UsedFields | undefined },
): Read {
  const isUnsaid = source.view === undefined && source.policy.read === undefined
  const read = isUnsaid && use.isOwn ? 'public' : readOf(catalog, source)
  return strictest([read, readOfUse(source, use.used)])
}

function openedByPrice(catalog: Catalog, collection: CollectionState): Read {
  return isFree(readPriceOf(catalog, collection)) ? 'key' : 'public'
}

/** Of its own application's sources: another application's were judged when it was made. */
function levelsOfSources(catalog: Catalog, view: StoredView): readonly Read[] {
  const uses = catalog.views.get(view.id)?.plan?.uses
  return view.sources.flatMap(({ app, id, model }) => {
    const source = app === view.app ? readableOfId(catalog, id) : undefined
    if (source === undefined) return []
    return [strictest([readOf(catalog, source), readOfUse(source, uses?.get(model))])]
  })
}

/** Keys alone read what a source does not offer to others; of a use that is not known none is judged. */
function readOfUse({ policy }: CollectionState, used: UsedFields | undefined): Read {
  return used !== undefined && hiddenUse(policy, used) !== undefined ? 'key' : 'public'
}

/** From the least strict on. */
const strictness = ['public', 'key', 'private'] as const

export function strictest(levels: readonly Read[]): Read {
  const most = Math.max(0, ...levels.map((level) => strictness.indexOf(level)))
  return strictness[most] ?? 'private'
}
