import { giveParts } from '@tollbase/testing/give-parts'
import { describe, expect, test } from 'vitest'
import type { Queryable } from '../../database/database.ts'
import type { SqlStatement } from '../../database/sql.ts'
import type { Definition } from '../../model/definition-entry.ts'
import type { DefinitionKind } from '../../model/definitions.ts'
import { loadCatalog } from './apply-definition.ts'
import { kinds } from './kinds.ts'

const at = '2026-01-31T12:00:00.000Z'
const source = { model: 'shop::orders', app: 'shop', id: 'col_1' }

const collection = {
  ...{ id: 'col_1', number: 1, name: 'orders', namespace: 'shop_orders', primary_column: 'id' },
  ...{ sort_column: null, collection_type: 'document', access_policy: null },
  ...{ schema_definition: null, created_at: at, updated_at: at },
}
const index = {
  ...{ id: 'idx_1', number: 2, name: 'orders_city_idx', collection: 'col_1', fields: ['city'] },
  ...{ index_type: 'string', unique: false, created_at: at },
}
const firstView = {
  ...{ id: 'view_1', app: 'shop', number: 3, name: 'all', refresh_mode: 'lazy' },
  ...{ query: { from: 'shop::orders' }, source_collections: ['orders'], sources: [source] },
  ...{ reads: [source], inner: {}, types: { 'shop::orders': { n: 'number' } }, positions: {} },
  ...{ variables: null, description: null, access_policy: { read: 'key' }, created_at: at },
}
const migration = {
  ...{ id: 'mig_1', collection: 'col_1', schema: { fields: {} }, migrated: 2, errors: ['a'] },
  started_at: at,
}
const resealing = { id: 'enc_1', collection: 'col_1', action: 'add', number: 5, started_at: at }
const query = { name: 'by-city', version: 1, parameters: [], sources: ['orders'], created_at: at }
const rule = { operation: 'read', model: 'per_row', amount: '10' }
const sharding = { keys: [{ field: 'day', type: 'time_range', granularity: 'day' }] }

/** Bodies of each kind as every version of the service wrote them, with and without their optional members. */
const written: { readonly [K in DefinitionKind]: readonly object[] } = {
  collection: [
    collection,
    { ...collection, sort_column: 'n', collection_type: 'event', access_policy: { read: 'key' } },
    { ...collection, sharding: { ...sharding, enforce_in_queries: true, max_shard_size: null } },
    { ...collection, encrypted: true },
    { ...collection, access_policy: 'public', schema_definition: { type: 'object' } },
  ],
  index: [
    index,
    { ...index, where: { city: { is: 'Wien' } }, sparse: true },
    { ...index, index_type: 'price', price: { platform_basis_points: 500, owner: null } },
  ],
  pricing: [
    { rules: [] },
    { rules: [{ ...rule, target: { collection: 'orders' } }] },
    {
      rules: [
        { ...rule, target: { view: 'all' } },
        { ...rule, target: { query: 'by-city' } },
        {
          target: { collection: 'orders' },
          operation: 'write',
          model: 'field_value',
          field: 'fee',
        },
      ],
    },
  ],
  relation: [
    { id: 'rel_1', parent: 'a', parent_field: 'id', child: 'b', child_field: 'a', created_at: at },
  ],
  migration: [
    { ...migration, state: 'running', ended_at: null },
    { ...migration, state: 'failed', ended_at: at },
  ],
  view: [
    firstView,
    { ...firstView, least_read: null, variables: { city: 'city.$in' }, description: 'all' },
    { ...firstView, least_read: 'private', access_policy: null, replaces: 'view_0' },
  ],
  grant: [
    { id: 'grant_1', grantee: 'maps', source: 'col_1', per_access: null, created_at: at },
    { id: 'grant_1', grantee: 'maps', source: 'col_1', per_access: '10', created_at: at },
  ],
  data_set: [
    {
      ...{ id: 'dset_1', number: 4, name: 'vip', kind: 'ip_country', public: false, count: 1 },
      ...{ created_at: at, updated_at: at },
    },
  ],
  encryption: [
    { private_app: true, updated_at: at },
    { private_app: false, updated_at: null },
  ],
  resealing: [
    { ...resealing, state: 'copying', ended_at: null },
    { ...resealing, state: 'completed', from: 7, ended_at: at },
  ],
  query: [
    { ...query, sql: 'SELECT id FROM shop::orders' },
    {
      ...{
        ...query,
        source_collection: 'orders',
        base_query: { find: {}, limit: null, sort: 'n' },
      },
      ...{
        parameters: [{ name: 'n', field_path: 'n.$gte', type: 'list', items: 'number', min: 1 }],
      },
      ...{ price: { per_row: 5, per_kb: null }, public: null, min_group_size: 3 },
      rate_limit: { requests: 1, window_seconds: 60 },
    },
  ],
}

describe('stored definitions', () => {
  test.each(Object.entries(written))(
    'definitions of kind %s are read as they were written',
    (kind, bodies) => {
      for (const body of bodies) {
        const later = { ...body, member_of_a_later_version: { a: [1] } }
        for (const text of [JSON.stringify(body), JSON.stringify(later)])
          expect(JSON.stringify(parse(kind, text))).toBe(text)
      }
    },
  )

  test.each(Object.entries(written))(
    'definitions of kind %s that are damaged are named',
    (kind, [body]) => {
      for (const text of ['{', '[]', 'null', '{}', JSON.stringify(body).replace(/:[["]/, ':1')])
        expect(() => parse(kind, text)).toThrow(
          `the stored definition of ${kind} the id is damaged`,
        )
    },
  )

  test('a definition of a kind that is not known changes nothing but the version of the catalog', async () => {
    const row = { kind: 'last deletion', id: '', body: 'null', leaf: 41n, found: 1n }
    const catalog = await loadCatalog(
      giveParts<Queryable>({ query: async () => [row] as never }),
      'app_1',
    )
    expect(catalog.version).toBe(42)
    expect(catalog.byName.size).toBe(0)
  })

  test('an index of a collection or view that is not there is in no catalog, and any other one is', async () => {
    const rows = [
      ['collection', 'col_1', collection],
      ...['col_1', 'view_1', 'col_2'].map(
        (of) => ['index', `idx_${of}`, { ...index, id: `idx_${of}`, collection: of }] as const,
      ),
      ['view', 'view_1', firstView],
    ] as const
    const all = rows.map(([kind, id, body], leaf) => ({
      ...{ kind, id, body: JSON.stringify(body) },
      ...{ leaf: BigInt(leaf), found: BigInt(rows.length) },
    }))
    const query = async ({ text }: SqlStatement) =>
      (text.includes("kind = 'view'") ? all.filter(({ kind }) => kind === 'view') : all) as never
    const catalog = await loadCatalog(giveParts<Queryable>({ query }), 'app_1')
    expect([...catalog.indexes.keys()]).toEqual(['idx_col_1', 'idx_view_1'])
  })

  test('a definition cannot be written with a body of another kind', () => {
    const body = {
      id: 'grant_1',
      grantee: 'maps',
      source: 'col_1',
      per_access: null,
      created_at: at,
    }
    const grant: Definition = { kind: 'grant', id: 'grant_1', body }
    // @ts-expect-error a grant is no relation
    const wrong: Definition = { kind: 'relation', id: 'grant_1', body }
    expect(wrong.body).toBe(grant.body)
  })
})

function parse(kind: string, text: string): unknown {
  const rules = Object.entries(kinds).find(([name]) => name === kind)?.[1]
  return rules?.parse('the id', text)
}
