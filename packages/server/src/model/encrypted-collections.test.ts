import { expect, test } from 'vitest'
import { buildCatalog, type Definitions, emptyCatalog } from './catalog.ts'
import type { Definition } from './definition-entry.ts'
import type { CollectionDefinition, IndexDefinition } from './definitions.ts'
import { refuseDefinitionsOnPrivate } from './encrypted-collections.ts'

const makeCollectionOf = (number: number): CollectionDefinition => ({
  ...{ id: `col_${number}`, name: `c${number}`, namespace: 'n', number },
  ...{ collection_type: 'document', primary_column: 'id', sort_column: null },
  ...{ schema_definition: null, access_policy: null, created_at: '', updated_at: '' },
})

const encrypt = (one: CollectionDefinition): Definition => ({
  kind: 'collection',
  id: one.id,
  body: { ...one, encrypted: true },
})

test('collections that become encrypted at once are judged by one look at all indexes', () => {
  const all = Array.from({ length: 100 }, (_, at) => makeCollectionOf(at))
  let looks = 0
  const indexes = new Map<string, IndexDefinition>()
  const values = indexes.values.bind(indexes)
  const catalog = buildCatalog({
    ...emptyCatalog,
    collections: new Map(all.map((one) => [one.id, one])),
    indexes: new Map(),
  } satisfies Definitions)
  const watched = Object.assign(indexes, {
    values: () => {
      looks += 1
      return values()
    },
  })
  refuseDefinitionsOnPrivate({ ...catalog, indexes: watched }, all.map(encrypt))
  expect(looks).toBe(1)
  refuseDefinitionsOnPrivate({ ...catalog, indexes: watched }, [])
  expect(looks).toBe(1)
})
