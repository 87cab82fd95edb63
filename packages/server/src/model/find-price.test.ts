import { expect, test } from 'vitest'
import { buildCatalog, type Catalog, emptyCatalog } from './catalog.ts'
import type { CollectionDefinition, StoredView, ViewSource } from './definitions.ts'
import { findDerivePrice, getReadPrice, isUnsold } from './find-price.ts'
import { resolveReadLevel } from './read-level.ts'
import type { PlannedView } from './view-plan.ts'

const collection: CollectionDefinition = {
  id: 'col_1',
  number: 1,
  name: 'c',
  namespace: 'x',
  primary_column: 'id',
  sort_column: null,
  collection_type: 'document',
  access_policy: { read: 'public', price: { per_row: '1000' } },
  schema_definition: null,
  created_at: '',
  updated_at: '',
}

function makePlanned(name: string, number: number, source: Omit<ViewSource, 'app'>): PlannedView {
  const view: StoredView = {
    ...{ id: `view_${name}`, app: 'b', number, name, refresh_mode: 'lazy', query: { select: [] } },
    ...{ source_collections: [], sources: [{ ...source, app: 'b' }], reads: [], inner: {} },
    ...{ types: {}, positions: {}, variables: null, description: null, access_policy: null },
    ...{ least_read: 'public', created_at: '' },
  }
  return { view, plan: undefined }
}

const chain = [
  makePlanned('w', 2, { model: 'b::c', id: 'col_1' }),
  makePlanned('v', 3, { model: 'b::w', id: 'view_w' }),
  makePlanned('u', 4, { model: 'b::v', id: 'view_v' }),
]

function makeCatalog(views: readonly PlannedView[]): Catalog {
  const collections = new Map([[collection.id, collection]])
  const byId = new Map(views.map((one) => [one.view.id, one]))
  return buildCatalog({ ...emptyCatalog, collections, views: byId })
}

const judge = (catalog: Catalog, name: string) => {
  const view = catalog.viewsByName.get(name)
  if (view === undefined) throw new Error(`there is no view ${name}`)
  return {
    perRow: getReadPrice(catalog, view).perRow,
    level: resolveReadLevel(catalog, view),
    isUnsold: isUnsold(catalog, view),
    derive: findDerivePrice(catalog, view),
  }
}

test('a view costs what its source does', () => {
  const sold = { perRow: 1000n, level: 'public', isUnsold: true, derive: undefined }
  for (const name of ['v', 'u']) expect(judge(makeCatalog(chain), name)).toEqual(sold)
})

test('a view whose source is gone, be it behind another view, is private, cannot be bought, and is not free to derive from', () => {
  const lost = { level: 'private', isUnsold: true, derive: undefined }
  const catalog = makeCatalog(chain.slice(1))
  for (const name of ['v', 'u']) expect(judge(catalog, name)).toMatchObject(lost)
})

test('neither a level nor a price of its own opens a view whose source is gone, nor does it give the rows of one source', () => {
  const policies = [{ read: 'public' }, { read: 'public', price: { per_row: '1' }, derive: 'free' }]
  for (const access_policy of policies) {
    const views = chain
      .slice(1)
      .map(({ view, plan }) => ({ view: { ...view, access_policy }, plan }))
    for (const name of ['v', 'u'])
      expect(judge(makeCatalog(views), name)).toMatchObject({ level: 'private', isUnsold: true })
  }
})
